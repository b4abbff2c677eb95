//! Kubernetes quantities (`100m`, `1.5Gi`, `2e3`), as numbers.

use serde_json::Value;

/// The quantity's value: cores for cpu, bytes for memory. `None` when it is no quantity.
pub fn quantity(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => parse(s),
        _ => None,
    }
}

fn parse(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 15] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    for (suffix, factor) in SUFFIXES {
        if let Some(number) = text.strip_suffix(suffix) {
            return number.parse::<f64>().ok().map(|n| n * factor);
        }
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::quantity;
    use serde_json::json;

    #[test]
    fn quantities() {
        for (text, want) in [("100m", 0.1), ("2", 2.0), ("1.5Gi", 1_610_612_736.0), ("2e3", 2000.0), ("64M", 64e6)] {
            assert_eq!(quantity(&json!(text)), Some(want), "{text}");
        }
        assert_eq!(quantity(&json!(3)), Some(3.0));
        assert_eq!(quantity(&json!("x")), None);
    }
}
