//! Relations between ours, the operator's value and the document that a row names when two plain values do not say it.

use flux_gen::flux::hostlist::Hostlist;
use flux_gen::model::words;
use serde_json::{Map, Value, json};

use crate::compare::{Difference, without_empties};
use crate::objects;
use crate::operators_names;
use crate::rows::{Facts, runner};

/// Whether the named relation holds.
pub fn holds(check: &str, difference: &Difference, facts: &Facts<'_>) -> bool {
    let of = Relation {
        path: &difference.path,
        ours: difference.ours.as_ref().unwrap_or(&Value::Null),
        operator: difference.operator.as_ref().unwrap_or(&Value::Null),
        spec: &facts.input["spec"],
    };
    match check {
        "no-retries"
        | "arm-nodes"
        | "pod-resources"
        | "pod-security-context"
        | "pull-secret"
        | "pod-field"
        | "toleration"
        | "certificate-mode" => of.pod(check),
        "api-refuses-operators" => operators_names::refused(of.operator, facts),
        "metadata-of-size" => {
            let name = facts.input["metadata"]["name"].as_str().unwrap_or_default();
            let mut metadata = json!({"name": format!("{name}-size")});
            if let Some(namespace) = facts.input["metadata"]["namespace"].as_str() {
                metadata["namespace"] = json!(namespace);
            }
            of.ours["metadata"] == metadata
        }
        "env-order" | "env-twice" | "ours-in-shell" | "own-command" | "service-command" | "service-as-written" => {
            of.container(check)
        }
        "leaked-mount"
        | "own-mount-of-shared-volume"
        | "empty-dir-at-path"
        | "empty-dir-elsewhere"
        | "medium-as-written" => of.mount(check),
        "job-archive" | "same-hosts" | "burst-defaults" | "lead-address" | "lead-hosts" => of.configuration(check),
        "command-as-shell" | "not-run" | "cores-of-resources" => of.program(check),
        "script-of-bundle" => {
            let mut words = of.operator.as_array().cloned().unwrap_or_default();
            let script = words.last_mut().filter(|word| **word == "/tmp/custom-entrypoint.sh");
            let ours = facts.words.get("runner").map(|runner| format!("/flux_operator/script-{runner}.sh"));
            script.zip(ours).map(|(word, ours)| *word = json!(ours)).is_some() && *of.ours == json!(words)
        }
        _ => of.run(check),
    }
}

struct Relation<'a> {
    path: &'a str,
    ours: &'a Value,
    operator: &'a Value,
    spec: &'a Value,
}

impl Relation<'_> {
    /// Name of the last part of the path.
    fn field(&self) -> &str {
        self.path.rsplit(['.', '[']).next().unwrap_or_default().trim_end_matches(']')
    }

    /// What stands in the last brackets after `word`.
    fn key(&self, word: &str) -> &str {
        let rest = self.path.split_once(&format!("{word}[")).map_or("", |(_, rest)| rest);
        rest.split_once(']').map_or("", |(key, _)| key)
    }

    fn list(&self, name: &str) -> Vec<Value> {
        self.spec[name].as_array().cloned().unwrap_or_default()
    }

    fn runner(&self) -> Value {
        let containers = self.list("containers");
        runner(&containers).and_then(|i| containers.get(i).cloned()).unwrap_or(Value::Null)
    }

    fn pod(&self, check: &str) -> bool {
        let pod = &self.spec["pod"];
        match check {
            "no-retries" => matches!(self.spec["backoffLimit"].as_i64(), None | Some(0)),
            "arm-nodes" => {
                let arm = json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}).to_string();
                let ours = self.ours.to_string();
                let operator = self.operator.to_string();
                let without = ours.replacen(&format!(",{arm}"), "", 1);
                ours.contains(&arm) && (self.operator.is_null() || without == operator)
            }
            "pod-resources" => {
                let quantities = |map: &Map<String, Value>| -> Value {
                    map.iter().map(|(name, amount)| (name.clone(), objects::quantity(amount))).collect()
                };
                pod["resources"].as_object().is_some_and(|map| &quantities(map) == self.ours)
            }
            "pod-security-context" => {
                let field = self.path.rsplit("securityContext.").next().unwrap_or_default();
                let whole = without_empties(&objects::keyed(&pod["securityContext"])).unwrap_or_default();
                &whole[field] == self.ours
            }
            "pull-secret" => {
                let services = self.list("services");
                let written = services.iter().map(|s| &s["imagePullSecret"]);
                let mut all = written.chain([&self.spec["flux"]["container"]["imagePullSecret"]]);
                let name = self.key("imagePullSecrets");
                if let Some((_, number)) = name.split_once('#') {
                    return self.ours.is_null() && number.parse::<u32>().is_ok();
                }
                self.ours == &json!({"name": name}) && all.any(|secret| secret == name)
            }
            "pod-field" => &pod[self.field()] == self.ours,
            "certificate-mode" => {
                let uid = |context: &Value| context["runAsUser"].as_i64();
                let runs_as = uid(&self.runner()["securityContext"]).or_else(|| uid(&pod["securityContext"]));
                let mode = if runs_as == Some(0) { 0o400 } else { 0o444 };
                self.ours["source"]["secret"]["defaultMode"] == json!(mode)
            }
            _ => pod["tolerations"].as_array().is_some_and(|list| list.contains(self.ours)),
        }
    }

    /// Containers that the path may mean, with those before each.
    fn named(&self) -> Vec<(Value, Vec<Value>)> {
        let list = self.list(if self.path.starts_with("Pod") { "services" } else { "containers" });
        let runner = runner(&list);
        let name = self.key("ontainers");
        let is_named = |index: usize, container: &Value| {
            container["name"] == name || (!self.path.starts_with("Pod") && Some(index) == runner)
        };
        let found = list.iter().enumerate().filter(|(index, container)| is_named(*index, container));
        found.map(|(index, container)| (container.clone(), list[..index].to_vec())).collect()
    }

    fn container(&self, check: &str) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match check {
            "env-order" => {
                let (operator, ours) = (text(self.operator), text(self.ours));
                let all: Vec<&str> = operator.split(' ').collect();
                let last =
                    all.iter().enumerate().filter(|(at, name)| !all[at + 1..].contains(name)).map(|(_, name)| *name);
                last.collect::<Vec<_>>().join(" ") == ours
            }
            "env-twice" => {
                let name = self.key("env").trim_end_matches("#2").to_owned();
                self.named()
                    .iter()
                    .any(|(c, _)| c["environment"].get(&name).is_some() && c["secrets"].get(&name).is_some())
            }
            "ours-in-shell" => {
                match (self.ours.as_array().map(Vec::as_slice), self.operator.as_array().map(Vec::as_slice)) {
                    (Some([shell, c, ours]), Some([operator])) => shell == "/bin/sh" && c == "-c" && ours == operator,
                    _ => false,
                }
            }
            "own-command" | "service-command" => self.named().iter().any(|(container, before)| {
                let words = words::split(&text(&container["command"])).unwrap_or_default();
                let script = format!("/flux_operator/services-start-{}.sh", before.len());
                self.ours == &json!(words) || (check == "service-command" && self.ours == &json!(["/bin/bash", script]))
            }),
            _ => {
                self.list("services").iter().any(|s| s["image"] == self.ours["image"] && s["name"] == self.ours["name"])
            }
        }
    }

    fn mount(&self, check: &str) -> bool {
        let path = self.key("volumeMounts");
        self.named().iter().any(|(container, before)| {
            let own = mount_of(container, path);
            let earlier = before.iter().any(|c| mount_of(c, path).is_some());
            match (check, own) {
                ("leaked-mount", None) => earlier,
                ("own-mount-of-shared-volume", Some((name, _))) => {
                    self.ours["mountPath"] == path && before.iter().any(|c| c["volumes"].get(&name).is_some())
                }
                ("empty-dir-at-path", Some((_, volume))) => {
                    let read_only = volume["readOnly"] == true;
                    let whole = self.ours["from"] == "emptyDir"
                        && self.ours["mountPath"] == path
                        && read_only == (self.ours["readOnly"] == true);
                    let flag = self.path.ends_with(".readOnly") && read_only && self.ours == &json!(true);
                    volume["emptyDir"] == true && (whole || flag)
                }
                ("empty-dir-elsewhere", own) => own.is_none() && earlier_or_own(container, before),
                ("medium-as-written", Some((_, volume))) => {
                    let medium = volume["emptyDirMedium"].as_str().unwrap_or_default();
                    let ours = self.ours["emptyDir"]["medium"].as_str().or_else(|| self.ours.as_str());
                    medium != "memory" && ours.is_some_and(|ours| ours.eq_ignore_ascii_case(medium))
                }
                _ => false,
            }
        })
    }

    fn configuration(&self, check: &str) -> bool {
        let text = |value: &Value| value.as_str().or_else(|| value["invalid"].as_str()).unwrap_or_default().to_owned();
        let (ours, operator) = (text(self.ours), text(self.operator));
        let hosts = |list: &str| Hostlist::parse(list).map(|l| l.iter().collect::<Vec<_>>()).ok();
        match check {
            "job-archive" => {
                operator.ends_with("/var/lib/flux/job-archive.sqlite") || matches!(operator.as_str(), "1m" | "50s")
            }
            "same-hosts" => hosts(&ours).is_some() && hosts(&ours) == hosts(&operator),
            "burst-defaults" => {
                let odd = operator.contains("--1]") || operator.contains(",-[") || operator.contains(" -0");
                odd && !ours.contains("--") && hosts(&ours.replace(' ', ",")).is_some()
            }
            "lead-hosts" => {
                let lead = &self.spec["flux"]["bursting"]["leadBroker"];
                let first = format!("{}-0", lead["name"].as_str().unwrap_or_default());
                operator.contains(lead["address"].as_str().unwrap_or("?")) && ours.split(' ').next() == Some(&first)
            }
            _ => self.spec["flux"]["bursting"]["leadBroker"]["address"] == operator.as_str(),
        }
    }

    fn program(&self, check: &str) -> bool {
        let runner = self.runner();
        let command = runner["command"].as_str().unwrap_or_default().trim().to_owned();
        let is_command = self.path.ends_with(".command");
        match check {
            "command-as-shell" => {
                let words = words::split(&command);
                if is_command {
                    let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
                    // A launcher's prefix stands before its command.
                    let ends = |end: Value| list(self.ours).ends_with(&list(&end));
                    ends(json!(["/bin/bash", "-c", command])) || words.is_some_and(|w| ends(json!(w)))
                } else if self.path.ends_with(".mode") {
                    self.operator == "none" && matches!(self.ours.as_str(), Some("submit" | "launcher"))
                } else {
                    // Options of the broker are lost only by an odd quote.
                    self.path.contains(".program.") || command.matches('"').count() % 2 == 1
                }
            }
            "not-run" => {
                let words = self.operator.as_array().cloned().unwrap_or_default();
                !is_command
                    || runner["batch"] == true
                    || words.iter().filter_map(Value::as_str).all(|w| command.contains(w) || w.starts_with('/'))
            }
            _ => {
                let (ours, operator) =
                    (self.ours.as_str().unwrap_or_default(), self.operator.as_str().unwrap_or_default());
                let without = ours.replacen("-o cpu-affinity=off", "", 1);
                let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                runner["cores"].is_null() && without != ours && words(&without) == words(operator)
            }
        }
    }

    /// Texts of the document that the operator writes through here-documents or quotes.
    fn texts(&self) -> Vec<String> {
        let runner = self.runner();
        let all = [&runner["commands"]["script"], &runner["command"], &self.spec["flux"]["brokerConfig"]];
        all.into_iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }

    /// The operator's scripts end before Flux: no `time` program, a mount path they do not expect, a view named like a key.
    fn never_starts(&self) -> bool {
        let view = &self.spec["flux"]["container"];
        let strict = self.spec["logging"]["strict"] == true;
        let timed = self.spec["logging"]["timed"] == true && self.path.starts_with("lead-without-time.");
        let moved = strict && view["mountPath"].as_str().is_some_and(|path| !path.is_empty() && path != "/mnt/flux");
        // What follows a quote with a blank in it is a program that no image has; variables of a script are set nowhere.
        let command = self.runner()["command"].as_str().unwrap_or_default().to_owned();
        let script = self.runner()["commands"]["script"].as_str().unwrap_or_default().to_owned();
        let quoted = strict && (command.contains('"') && command.contains(' ') || script.contains('$'));
        let collides = view["name"].as_str().is_some_and(|name| name.starts_with("wait-"));
        let operator = match self.path.rsplit('.').next() {
            Some("exit") => {
                matches!(self.operator.as_i64(), Some(0..=2 | 127)) && self.ours.as_i64().is_none_or(|code| code <= 1)
            }
            _ => self.operator.is_null() && !self.ours.is_null(),
        };
        operator && (timed || moved || quoted || collides)
    }

    /// The operator leaves out hooks of a sidecar and its prefix; the code of what comes last is its exit code.
    fn sidecar_hook(&self, container: &Value) -> bool {
        let text = |field: &str| container["commands"][field].as_str().unwrap_or_default().to_owned();
        let lines =
            |value: &Value| -> Vec<String> { value.as_str().unwrap_or_default().lines().map(str::to_owned).collect() };
        let operator = lines(self.operator);
        let ours = lines(self.ours);
        let hooks = ["pre", "brokerPre", "workerPre", "script"].map(text);
        let known = |line: &String| operator.contains(line) || hooks.iter().any(|hook| hook.contains(line.as_str()));
        let prints = ours.len() > operator.len() && ours.iter().all(known);
        let prefixed = !text("prefix").is_empty() && !self.path.ends_with(".user");
        let failed = self.path.ends_with(".exit") && !text("post").is_empty() && self.operator == &json!(0);
        prints || prefixed || failed
    }

    /// A call of the batch script: waiting for all jobs, or a job with the document's own command and without pins.
    fn batch_jobs(&self, operator: &[String]) -> bool {
        let list = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|w| w.as_str().map(str::to_owned)).collect()
        };
        let ours = list(if self.ours.is_array() { self.ours } else { &self.ours["argv"] });
        let operator = if self.operator.is_array() { list(self.operator) } else { operator.to_vec() };
        if ours == ["job", "wait", "--all"] {
            return operator.is_empty();
        }
        let submit = self.spec["flux"]["submitCommand"].as_str().is_some_and(|command| !command.is_empty());
        let job = |words: &[String]| words.iter().any(|word| word == "waitable");
        let plain = ours.join(" ").replacen("-o cpu-affinity=off ", "", 1);
        let pins = plain != ours.join(" ") && plain == operator.join(" ");
        pins || (submit && (job(&ours) || job(&operator)))
    }

    fn run(&self, check: &str) -> bool {
        let argv = |value: &Value| -> Vec<String> {
            value["argv"].as_array().into_iter().flatten().filter_map(|w| w.as_str().map(str::to_owned)).collect()
        };
        let operator = argv(self.operator);
        let begins = |words: &[&str]| operator.len() >= words.len() && operator.iter().zip(words).all(|(a, b)| a == b);
        let ours = self.ours.as_str().unwrap_or_default();
        let runner = self.runner();
        match check {
            "certificate-printed" => self.operator.as_u64().is_some_and(|times| times > 0),
            "encodes-r" => begins(&["R", "encode"]),
            "ran-in-set-up" => {
                let words = if operator.is_empty() { Vec::new() } else { operator.clone() };
                let ends = |text: &str| text.lines().any(|l| matches!(l.trim(), "EOF" | "EOT"));
                let texts = self.texts();
                let quoted = runner["command"].as_str().is_some_and(|c| c.contains('"'));
                let by = self
                    .key("calls")
                    .split('#')
                    .next()
                    .unwrap_or_default()
                    .trim_start_matches("not found: ")
                    .to_owned();
                let named = |text: &String| text.contains(&by) || text.replace('"', "").contains(&by);
                (texts.iter().any(|t| ends(t)) || quoted)
                    && (!words.is_empty() || by.is_empty())
                    && texts.iter().any(named)
            }
            "set-up-prints" => {
                let printed = self.operator.as_str().unwrap_or_default();
                let after =
                    |text: &String| text.split_once("\nEOF\n").is_some_and(|(_, after)| after.contains(printed));
                let quiet = self.spec["logging"]["quiet"] == true;
                !printed.is_empty()
                    && (self.texts().iter().any(after) || (quiet && ours.lines().all(|l| printed.contains(l))))
            }
            "without-empty-entry" => self.operator.as_str().is_some_and(|paths| paths.strip_prefix(':') == Some(ours)),
            "baked-environment" => {
                self.operator.as_str().is_some_and(|paths| paths.ends_with(ours) && !ours.is_empty())
            }
            "flux-environment" => {
                let value = &self.spec["flux"]["environment"][self.field()];
                let plain = value.to_string();
                value == self.ours || plain == ours
            }
            "follower" => self.path.starts_with("follower"),
            "measures" => begins(&["-f"]) && operator.get(1).is_some_and(|f| f.starts_with("FLUXTIME ")),
            "never-starts" => self.never_starts(),
            "after-failure" => {
                let post = runner["commands"]["post"].as_str().unwrap_or_default();
                self.ours == &json!(true) || (!ours.is_empty() && ours.lines().all(|line| post.contains(line)))
            }
            "wraps" => self.spec["flux"]["wrap"] == *self.ours,
            "starts-the-broker" => {
                let wraps = self.spec["flux"]["wrap"].as_str().is_some_and(|wrap| !wrap.is_empty());
                let (ours, operator) = if wraps { ("start", "broker") } else { ("broker", "start") };
                self.ours == ours && self.operator == operator
            }
            "private-copy" => {
                let strict = self.spec["logging"]["strict"] == true;
                let mode = |value: &Value| value["mode"].as_str().or_else(|| value.as_str()).map(str::to_owned);
                let operators = mode(self.operator).is_some_and(|mode| mode == "0600");
                operators && (mode(self.ours).is_some_and(|mode| mode == "0400") || (strict && self.ours.is_null()))
            }
            "batch-jobs" => self.batch_jobs(&operator),
            "tried-again" => match self.path.rsplit('.').next() {
                _ if self.path.starts_with("lead") => {
                    self.spec["flux"]["bursting"]["leadBroker"].is_object()
                        && self.ours.as_u64() > self.operator.as_u64()
                }
                _ if self.spec["flux"]["completeWorkers"] != true => false,
                Some("times") => self.operator == &json!(1) && self.ours == &json!(3),
                Some("exit") => self.operator == &json!(1) && self.ours == &json!(0),
                _ => self.operator.is_null() && self.ours == &json!(true),
            },
            "waits-for-socket" => {
                let waits =
                    self.path.contains("goshare-wait-fs") && self.ours.is_null() && operator.iter().any(|w| w == "-p");
                let strict = self.spec["logging"]["strict"] == true;
                let stopped = self.path.ends_with(".exit") && self.operator == &json!(127) && self.ours == &json!(0);
                waits || (strict && stopped) || (strict && self.operator.is_null() && self.path.contains(".calls["))
            }
            "connects" => begins(&["flux", "proxy"]),
            "sidecar-hook" => self.list("containers").iter().any(|c| self.sidecar_hook(c)),
            other => panic!("differences.toml: unknown check {other}"),
        }
    }
}

/// Whether a container, or one before it, has an emptyDir that is mounted elsewhere than where the operator puts them all.
fn earlier_or_own(container: &Value, before: &[Value]) -> bool {
    let mut all = before.iter().chain([container]).filter_map(|c| c["volumes"].as_object()).flatten();
    all.any(|(_, volume)| volume["emptyDir"] == true)
}

/// The volume that a container mounts at a path, by the document.
fn mount_of(container: &Value, path: &str) -> Option<(String, Value)> {
    let volumes = container["volumes"].as_object()?;
    let at = |volume: &Value| match volume["path"].as_str() {
        Some(written) if !written.is_empty() => written.trim_end_matches('/') == path,
        _ => volume["emptyDir"] == true && path == "/dev/shm",
    };
    volumes.iter().find(|(_, volume)| at(volume)).map(|(name, volume)| (name.clone(), volume.clone()))
}
