//! How a transfer of images is shown: bars on a terminal, a line for each blob elsewhere, JSON lines for programs.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::args::MessageFormat;
use super::ui::Ui;
use crate::oci::transfer::{Event, Events, Step};
use crate::oci::{Descriptor, Digest};

/// Programs get a line each time that so much more of a blob is through, in percent.
const STEP: u64 = 10;

/// Shows events as they come.
pub(crate) struct Progress {
    ui: Ui,
    bars: Option<Bars>,
    /// The last step of each blob that programs were told.
    told: Mutex<BTreeMap<Digest, u64>>,
}

/// The bar of everything, and one for each blob under way.
struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    blobs: Mutex<BTreeMap<Digest, ProgressBar>>,
    /// Bytes of each blob that are through.
    done: Mutex<BTreeMap<Digest, u64>>,
}

/// An event as a JSON object; the keys are always the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Line<'a> {
    severity: &'static str,
    message: String,
    /// `planned`, `blob`, `document`, `tag`.
    event: &'static str,
    /// Of a blob: `moving`, `moved`, `mounted`, `present`; of a document `put`, `present`; of a tag `put`.
    state: Option<&'static str>,
    digest: Option<String>,
    /// Bytes of the blob, or of all that is planned.
    size: Option<u64>,
    /// Bytes that are through.
    bytes: Option<u64>,
    /// The repository that it was mounted from.
    from: Option<&'a str>,
    tag: Option<&'a str>,
}

impl Progress {
    /// Bars are for people who look: none without a terminal, with `--quiet`, or in another format.
    pub(crate) fn new(ui: &Ui) -> Self {
        let bars = (ui.is_for_people() && std::io::stderr().is_terminal()).then(Bars::new);
        Self { ui: *ui, bars, told: Mutex::default() }
    }

    fn show(&self, line: &Line<'_>) {
        match (&self.bars, self.ui.format()) {
            (_, MessageFormat::Json) => self.ui.json_line(line),
            (_, _) if line.state == Some("moving") => {}
            (Some(bars), _) => bars.all.suspend(|| self.ui.status(&line.message)),
            (None, _) => self.ui.status(&line.message),
        }
    }

    /// Whether a blob has got to another step since programs were told.
    fn is_news(&self, blob: &Descriptor, bytes: u64) -> bool {
        let step = bytes.saturating_mul(100).checked_div(blob.size.max(1)).unwrap_or(100) / STEP;
        locked(&self.told).insert(blob.digest.clone(), step) != Some(step)
    }
}

impl Events for Progress {
    fn event(&self, event: &Event<'_>) {
        if let Some(bars) = &self.bars {
            bars.event(event);
        }
        if let Event::Blob { blob, step: Step::At(bytes) } = event
            && (self.ui.format() != MessageFormat::Json || !self.is_news(blob, *bytes))
        {
            return;
        }
        self.show(&line(event));
    }
}

fn line<'a>(event: &'a Event<'a>) -> Line<'a> {
    let base = Line { severity: "info", ..Line::default() };
    match event {
        Event::Planned { blobs, bytes, documents } => Line {
            message: format!("{blobs} blobs ({}) of {documents} manifests", size(*bytes)),
            event: "planned",
            size: Some(*bytes),
            ..base
        },
        Event::Blob { blob, step } => {
            let (state, bytes, from) = match step {
                Step::At(bytes) => ("moving", *bytes, None),
                Step::Done => ("moved", blob.size, None),
                Step::Present => ("present", 0, None),
                Step::Mounted { from } => ("mounted", 0, Some(from.as_str())),
            };
            let tail = from.map(|from| format!(" from {from}")).unwrap_or_default();
            Line {
                message: format!("{state:<8} {} {}{tail}", blob.digest, size(blob.size)),
                event: "blob",
                state: Some(state),
                digest: Some(blob.digest.to_string()),
                size: Some(blob.size),
                bytes: Some(bytes),
                from,
                ..base
            }
        }
        Event::Document { document, present } => {
            let state = if *present { "present" } else { "put" };
            Line {
                message: format!("{state:<8} {} {}", document.digest, size(document.size)),
                event: "document",
                state: Some(state),
                digest: Some(document.digest.to_string()),
                size: Some(document.size),
                ..base
            }
        }
        Event::Tag { name, digest } => Line {
            message: format!("tagged   {digest} as {name}"),
            event: "tag",
            state: Some("put"),
            digest: Some(digest.to_string()),
            tag: Some(name),
            ..base
        },
    }
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let total = all.add(styled(0, "{bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}"));
        Self { all, total, blobs: Mutex::default(), done: Mutex::default() }
    }

    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Planned { bytes, .. } => self.total.set_length(*bytes),
            Event::Blob { blob, step: Step::At(bytes) } => {
                let mut bars = locked(&self.blobs);
                let bar = bars.entry(blob.digest.clone()).or_insert_with(|| {
                    let bar = styled(blob.size, "{bar:30} {decimal_bytes}/{decimal_total_bytes} {msg}");
                    bar.set_message(blob.digest.short().to_owned());
                    self.all.insert_before(&self.total, bar)
                });
                bar.set_position(*bytes);
                self.at(&blob.digest, *bytes);
            }
            Event::Blob { blob, .. } => {
                if let Some(bar) = locked(&self.blobs).remove(&blob.digest) {
                    bar.finish_and_clear();
                }
                self.at(&blob.digest, blob.size);
            }
            Event::Document { .. } | Event::Tag { .. } => {}
        }
    }

    fn at(&self, blob: &Digest, bytes: u64) {
        let mut done = locked(&self.done);
        done.insert(blob.clone(), bytes);
        self.total.set_position(done.values().sum());
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        for bar in locked(&self.blobs).values() {
            bar.finish_and_clear();
        }
        self.total.finish_and_clear();
    }
}

fn styled(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(event: &Event<'_>) -> (String, serde_json::Value) {
        let line = line(event);
        (line.message.clone(), serde_json::to_value(&line).unwrap())
    }

    #[test]
    fn events_as_lines() {
        let blob = Descriptor::new("x", Digest::of(b"x"), 1_234_567);
        let digest = &blob.digest;
        let mounted = Step::Mounted { from: "a/b".to_owned() };
        let cases = [
            (
                Event::Planned { blobs: 2, bytes: 2_000_000, documents: 3 },
                "2 blobs (2.00 MB) of 3 manifests".to_owned(),
            ),
            (Event::Blob { blob: &blob, step: Step::Done }, format!("moved    {digest} 1.23 MB")),
            (Event::Blob { blob: &blob, step: Step::Present }, format!("present  {digest} 1.23 MB")),
            (Event::Blob { blob: &blob, step: mounted }, format!("mounted  {digest} 1.23 MB from a/b")),
            (Event::Document { document: &blob, present: false }, format!("put      {digest} 1.23 MB")),
            (Event::Tag { name: "v1", digest }, format!("tagged   {digest} as v1")),
        ];
        let keys = ["severity", "message", "event", "state", "digest", "size", "bytes", "from", "tag"];
        for (event, text) in cases {
            let (message, json) = shown(&event);
            assert_eq!(message, text);
            assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), keys);
        }
        let (_, json) = shown(&Event::Blob { blob: &blob, step: Step::At(5) });
        assert_eq!((json["state"].as_str(), json["bytes"].as_u64()), (Some("moving"), Some(5)));
    }
}
