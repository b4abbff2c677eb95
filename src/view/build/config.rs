//! Configuration and manifest of a view's image.

use std::collections::BTreeMap;

use super::BuiltLayer;
use crate::oci::document::Manifest;
use crate::oci::image::{ContainerConfig, History, ImageConfig};
use crate::oci::layout::LayoutWriter;
use crate::oci::{Descriptor, Digest, Error, Platform, media};
use crate::view::contract::{LABEL, Report, provided_label};
use crate::view::image::Image;
use crate::view::plan::{Base, Plan};

/// Where programs are looked for in a container of the view itself.
const PATH: &str = "PATH=/opt/view/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Writes both; gives the descriptor of the manifest.
pub(super) fn write(
    plan: &Plan,
    platform: &Platform,
    layers: &[BuiltLayer],
    report: &Report,
    base: Option<&Image>,
    writer: &LayoutWriter,
    time: u64,
) -> Result<Descriptor, Error> {
    let mut diff_ids: Vec<Digest> = base.map(|base| base.config.rootfs.diff_ids.clone()).unwrap_or_default();
    for layer in layers {
        diff_ids.push(layer.diff_id.parse()?);
    }
    let created = rfc3339(time);
    let mut made = ImageConfig::new(platform.clone(), diff_ids);
    made.created = Some(created.clone());
    let mut container = base
        .and_then(|base| base.config.config.clone())
        .unwrap_or_else(|| ContainerConfig { env: vec![PATH.to_owned()], ..ContainerConfig::default() });
    container.labels.extend(report.labels(&platform.architecture, plan.os.as_deref()));
    container.labels.insert(format!("{LABEL}name"), plan.name.clone());
    container.labels.extend(provided_label(&plan.provided));
    container.labels.extend(plan.labels.clone());
    made.config = Some(container);
    made.history = base.map(history_of).unwrap_or_default();
    made.history.extend(layers.iter().map(|layer| History {
        created: Some(created.clone()),
        created_by: Some(format!("flux-gen view build: {}", layer.name)),
        ..History::default()
    }));
    let config = writer.json(media::CONFIG, &made)?;
    let own =
        layers.iter().map(|layer| layer.descriptor.clone().annotation(format!("{LABEL}layer"), layer.name.as_str()));
    let all = base.map(|base| base.manifest.layers.clone()).unwrap_or_default().into_iter().chain(own).collect();
    let mut manifest = Manifest::new(config, all);
    manifest.annotations = annotations(plan);
    if let (Some(base), Base::Image(reference)) = (base, &plan.base) {
        manifest
            .annotations
            .insert("org.opencontainers.image.base.digest".to_owned(), base.descriptor.digest.to_string());
        if let Some((name, _)) = reference.value.split_once('@') {
            manifest.annotations.insert("org.opencontainers.image.base.name".to_owned(), name.to_owned());
        }
    }
    writer.json(media::MANIFEST, &manifest)
}

/// What the index and the manifests say of themselves.
pub(super) fn annotations(plan: &Plan) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    annotations.insert("org.opencontainers.image.title".to_owned(), plan.name.clone());
    annotations
        .extend(plan.description.iter().map(|text| ("org.opencontainers.image.description".to_owned(), text.clone())));
    // Another version of the encoder makes other bytes of the same tree, and this tells why.
    annotations.insert(format!("{LABEL}encoder"), plan.compression.encoder().to_owned());
    annotations
}

/// The steps of a base, one for each of its layers at least.
fn history_of(base: &Image) -> Vec<History> {
    let steps = base.config.history.iter().filter(|step| !step.empty_layer).count();
    let mut history = base.config.history.clone();
    // Tools that read the history take a layer for each step, so they have to be as many.
    let missing = base.manifest.layers.len().saturating_sub(steps);
    history
        .extend((0..missing).map(|_| History { comment: Some("layer of the base".to_owned()), ..History::default() }));
    history
}

/// Seconds since 1970 as RFC 3339 has them, in UTC.
#[must_use]
pub fn rfc3339(time: u64) -> String {
    let (days, second) = (time / 86_400, time % 86_400);
    // Days since 1 March of year 0 (proleptic Gregorian), in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn times() {
        for (time, expect) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(time), expect);
        }
    }
}
