//! Looks for a private key in anything that leaves the program.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use flux_gen::flux::Certificate;

/// A private key in every form in which it could leak.
pub struct Needles(Vec<(String, Vec<u8>)>);

impl Needles {
    /// The forms of the key in this certificate file.
    pub fn of(file: &[u8]) -> Self {
        let certificate = Certificate::parse(file).unwrap();
        let text = certificate.secret_key_text();
        let key = z85::decode(text.as_str()).unwrap();
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let list = key.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
        let mut forms = vec![
            ("Z85".to_owned(), text.as_bytes().to_vec()),
            ("bytes".to_owned(), key.clone()),
            ("hexadecimal".to_owned(), hex.clone().into_bytes()),
            ("hexadecimal, upper case".to_owned(), hex.to_uppercase().into_bytes()),
            ("list of numbers".to_owned(), list.into_bytes()),
            ("base64 of the key".to_owned(), STANDARD_NO_PAD.encode(&key).into_bytes()),
            ("base64 (URL) of the key".to_owned(), URL_SAFE.encode(&key).into_bytes()),
            ("JSON".to_owned(), serde_json::to_vec(text.as_str()).unwrap()),
        ];
        // The key's text within base64 of something longer, at each of the three alignments, without the ends that depend
        // on what stands around it.
        for shift in 0..3 {
            let mut padded = vec![b'x'; shift];
            padded.extend_from_slice(text.as_bytes());
            let encoded = STANDARD.encode(&padded);
            let inner = &encoded.as_bytes()[4..encoded.len() - 4];
            forms.push((format!("base64 of text, shifted by {shift}"), inner.to_vec()));
        }
        Self(forms)
    }

    /// The first form that is in `haystack`.
    pub fn find(&self, haystack: &[u8]) -> Option<&str> {
        let holds = |needle: &[u8]| haystack.windows(needle.len()).any(|window| window == needle);
        self.0.iter().find(|(_, needle)| holds(needle)).map(|(name, _)| name.as_str())
    }
}
