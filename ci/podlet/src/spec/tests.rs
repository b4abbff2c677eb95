use serde_json::json;

use super::{DecodeError, decode};

fn unsupported(pod: &serde_json::Value) -> Vec<String> {
    match decode(pod) {
        Err(DecodeError::Unsupported(list)) => list,
        other => vec![format!("{other:?}")],
    }
}

#[test]
fn a_pod_as_the_api_server_defaults_it() {
    let pod = json!({"spec": {
        "containers": [{
            "name": "a", "image": "i", "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "ports": [{"containerPort": 8050, "name": "flux", "protocol": "TCP"}],
            "startupProbe": {"tcpSocket": {"port": "flux"}, "periodSeconds": 10, "successThreshold": 1,
                             "failureThreshold": 3, "timeoutSeconds": 1}
        }],
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Never", "schedulerName": "default-scheduler",
        "securityContext": {}, "terminationGracePeriodSeconds": 30, "enableServiceLinks": true,
        "priority": 0, "preemptionPolicy": "PreemptLowerPriority", "serviceAccount": "default",
        "serviceAccountName": "default", "tolerations": [{"key": "x", "operator": "Exists"}],
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
        "affinity": {"podAntiAffinity": {}}, "nodeSelector": {"a": "b"}
    }});
    let spec = decode(&pod).expect("decodes");
    assert_eq!(spec.containers[0].name, "a");
    assert_eq!(spec.grace_seconds(), 30);
}

#[test]
fn every_unknown_field_is_named_with_its_path() {
    let pod = json!({"spec": {
        "containers": [
            {"name": "a", "image": "i", "volumeDevices": [], "securityContext": {"procMount": "Unmasked"}},
            {"name": "b", "image": "i", "livenessProbe": {"grpc": {"port": 1}},
             "env": [{"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]}
        ],
        "runtimeClassName": "gvisor",
        "volumes": [{"name": "v", "csi": {"driver": "x"}}]
    }});
    let mut got = unsupported(&pod);
    got.sort();
    assert_eq!(
        got,
        [
            "spec.containers[0].securityContext.procMount",
            "spec.containers[0].volumeDevices",
            "spec.containers[1].env[0].valueFrom.resourceFieldRef",
            "spec.containers[1].livenessProbe.grpc",
            "spec.containers[1].livenessProbe: needs one of exec, tcpSocket, httpGet",
            "spec.runtimeClassName",
            "spec.volumes[0].csi",
        ]
    );
}

#[test]
fn values_outside_the_list() {
    let base = |extra: serde_json::Value| {
        let mut spec = json!({"containers": [{"name": "a", "image": "i"}]});
        for (k, v) in extra.as_object().into_iter().flatten() {
            spec[k] = v.clone();
        }
        json!({"spec": spec})
    };
    let cases = [
        (json!({"hostNetwork": true}), "spec.hostNetwork: true"),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Localhost"}}}),
            "spec.securityContext.seccompProfile.type: Localhost",
        ),
        (
            json!({"initContainers": [{"name": "s", "image": "i", "restartPolicy": "Never"}]}),
            "spec.initContainers[0].restartPolicy: Never",
        ),
        (
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/x", "type": "Socket"}}]}),
            "spec.volumes[0].hostPath.type: Socket",
        ),
        (
            json!({"containers": [{"name": "a", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}]}),
            "spec.containers[0].ports[0].hostPort",
        ),
    ];
    for (extra, want) in cases {
        assert_eq!(unsupported(&base(extra)), [want]);
    }
}

#[test]
fn a_wrong_type_is_no_unsupported_field() {
    let got = decode(&json!({"spec": {"containers": "x"}}));
    assert!(matches!(got, Err(DecodeError::Invalid(_))), "{got:?}");
}
