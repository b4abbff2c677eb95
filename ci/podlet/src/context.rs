//! What every part of a running podlet shares, and what is known of one pod.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::api::{ApiError, Client};
use crate::dns::{DOMAIN, Zone};
use crate::images::ImageMap;
use crate::logs::LogPump;
use crate::net::NodeNet;
use crate::podman::Images;
use crate::say::say;
use crate::spec::{DnsPolicy, FieldRef, Meta, PodSpec};

/// Settings of one run.
pub struct Options {
    /// Node name.
    pub node: String,
    /// State folder, absolute.
    pub state: PathBuf,
    /// Where `hostPath` volumes really are.
    pub host_path_root: PathBuf,
    /// Which local image stands for which reference.
    pub images: ImageMap,
    /// First delay before a container starts again.
    pub backoff_first: Duration,
    /// Longest delay.
    pub backoff_max: Duration,
    /// How often mounted ConfigMaps and Secrets are read again.
    pub sync_period: Duration,
    /// Whether cpu and memory limits become cgroup limits.
    pub limits: bool,
}

/// A running podlet.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// Settings.
    pub options: Options,
    /// Names.
    pub zone: Zone,
    /// Namespaces.
    pub net: NodeNet,
    /// Output of containers.
    pub logs: LogPump,
    /// Images of this machine.
    pub local: Images,
}

/// A pod as podlet runs it.
#[derive(Clone)]
pub struct Pod {
    /// Its metadata.
    pub meta: Meta,
    /// Its spec.
    pub spec: PodSpec,
}

impl Pod {
    /// `namespace/name`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.meta.namespace, self.meta.name)
    }

    /// Its path in the API.
    pub fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods/{}", self.meta.namespace, self.meta.name)
    }

    /// The short host name: `spec.hostname`, else the pod's name cut to 63 bytes.
    pub fn short_hostname(&self) -> String {
        match &self.spec.hostname {
            Some(name) => name.clone(),
            None => self.meta.name.chars().take(63).collect::<String>().trim_end_matches(['-', '.']).to_owned(),
        }
    }

    /// `<hostname>.<subdomain>.<ns>.svc.<domain>` for a pod with a subdomain.
    pub fn fqdn(&self) -> Option<String> {
        let subdomain = self.spec.subdomain.as_ref()?;
        Some(format!("{}.{subdomain}.{}.svc.{DOMAIN}", self.short_hostname(), self.meta.namespace))
    }

    /// What `hostname` prints in the containers.
    pub fn hostname(&self) -> String {
        match self.fqdn() {
            Some(fqdn) if self.spec.set_hostname_as_fqdn == Some(true) => fqdn,
            _ => self.short_hostname(),
        }
    }

    /// `/etc/hosts` as the kubelet writes it.
    pub fn hosts_file(&self, ip: Ipv4Addr) -> String {
        let short = self.short_hostname();
        let mut out = String::from("# Managed by podlet, like the kubelet's.\n127.0.0.1\tlocalhost\n");
        out.push_str("::1\tlocalhost ip6-localhost ip6-loopback\n");
        match self.fqdn() {
            Some(fqdn) => out.push_str(&format!("{ip}\t{fqdn}\t{short}\n")),
            None => out.push_str(&format!("{ip}\t{short}\n")),
        }
        for alias in &self.spec.host_aliases {
            out.push_str(&format!("{}\t{}\n", alias.ip, alias.hostnames.join("\t")));
        }
        out
    }

    /// `/etc/resolv.conf` by `dnsPolicy` and `dnsConfig`.
    pub fn resolv_conf(&self, name_server: Ipv4Addr) -> String {
        let ns = &self.meta.namespace;
        let extra = self.spec.dns_config.clone().unwrap_or_default();
        let (mut servers, mut searches, mut options) = (Vec::new(), Vec::new(), BTreeMap::new());
        match self.spec.dns_policy {
            DnsPolicy::ClusterFirst | DnsPolicy::ClusterFirstWithHostNet => {
                servers.push(name_server.to_string());
                searches.extend([format!("{ns}.svc.{DOMAIN}"), format!("svc.{DOMAIN}"), DOMAIN.to_owned()]);
                options.insert("ndots".to_owned(), Some("5".to_owned()));
            }
            // The machine's own servers cannot be reached from here; the bridge knows no outside names either.
            DnsPolicy::Default => servers.push(name_server.to_string()),
            DnsPolicy::None => {}
        }
        servers.extend(extra.nameservers);
        searches.extend(extra.searches);
        options.extend(extra.options.into_iter().map(|o| (o.name, o.value)));
        let mut out = String::new();
        if !searches.is_empty() {
            out.push_str(&format!("search {}\n", searches.join(" ")));
        }
        for server in servers {
            out.push_str(&format!("nameserver {server}\n"));
        }
        let options: Vec<String> =
            options.into_iter().map(|(k, v)| v.map_or(k.clone(), |v| format!("{k}:{v}"))).collect();
        if !options.is_empty() {
            out.push_str(&format!("options {}\n", options.join(" ")));
        }
        out
    }

    /// A field by its path (downward API). `None`: podlet does not know that path.
    pub fn field(&self, reference: &FieldRef, node: &str, ip: Ipv4Addr, host_ip: Ipv4Addr) -> Option<String> {
        let path = reference.field_path.as_str();
        let lines = |map: &BTreeMap<String, String>| {
            map.iter().map(|(k, v)| format!("{k}={v:?}")).collect::<Vec<_>>().join("\n")
        };
        let one = |map: &BTreeMap<String, String>, prefix: &str| {
            let key = path.strip_prefix(prefix)?.strip_suffix("']")?;
            Some(map.get(key).cloned().unwrap_or_default())
        };
        match path {
            "metadata.name" => Some(self.meta.name.clone()),
            "metadata.namespace" => Some(self.meta.namespace.clone()),
            "metadata.uid" => Some(self.meta.uid.clone()),
            "metadata.labels" => Some(lines(&self.meta.labels)),
            "metadata.annotations" => Some(lines(&self.meta.annotations)),
            "spec.nodeName" => Some(node.to_owned()),
            "spec.serviceAccountName" => Some(self.spec.service_account_name.clone().unwrap_or_default()),
            "status.podIP" | "status.podIPs" => Some(ip.to_string()),
            "status.hostIP" | "status.hostIPs" => Some(host_ip.to_string()),
            _ => one(&self.meta.labels, "metadata.labels['")
                .or_else(|| one(&self.meta.annotations, "metadata.annotations['")),
        }
    }
}

impl Context {
    /// The data of a ConfigMap (`configmaps`) or Secret (`secrets`); `None` when there is no such object.
    ///
    /// # Errors
    /// The API server does not answer, or a value is no base64.
    pub fn map(&self, kind: &str, ns: &str, name: &str) -> Result<Option<BTreeMap<String, Vec<u8>>>, ApiError> {
        let object = match self.client.get(&format!("/api/v1/namespaces/{ns}/{kind}/{name}")) {
            Ok(object) => object,
            Err(e) if e.code() == Some(404) => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut out = BTreeMap::new();
        let entries = |field: &str| object.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
        for (key, value) in entries("data") {
            let text = value.as_str().unwrap_or_default();
            let bytes = if kind == "secrets" { decode(text)? } else { text.as_bytes().to_vec() };
            out.insert(key, bytes);
        }
        for (key, value) in entries("binaryData") {
            out.insert(key, decode(value.as_str().unwrap_or_default())?);
        }
        Ok(Some(out))
    }

    /// Tells the user about a pod, as the kubelet does.
    pub fn event(&self, pod: &Meta, kind: &str, reason: &str, message: &str) {
        say!("{}/{}: {reason}: {message}", pod.namespace, pod.name);
        let now = jiff::Timestamp::now();
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"generateName": format!("{}.", pod.name), "namespace": pod.namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace,
                               "name": pod.name, "uid": pod.uid},
            "type": kind, "reason": reason, "message": message.chars().take(1000).collect::<String>(),
            "source": {"component": "podlet", "host": self.options.node},
            "firstTimestamp": seconds(now), "lastTimestamp": seconds(now), "count": 1
        });
        if let Err(e) = self.client.post(&format!("/api/v1/namespaces/{}/events", pod.namespace), &event) {
            say!("event {reason}: {e}");
        }
    }
}

/// RFC 3339 with whole seconds, as `metav1.Time` is printed.
pub fn seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn decode(text: &str) -> Result<Vec<u8>, ApiError> {
    STANDARD.decode(text).map_err(|e| ApiError::Transport(format!("base64: {e}")))
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
