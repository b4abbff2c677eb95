//! Pages of `docs/` that are made from tables of the program.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use flux_gen::model::settings::{ALL, ANNOTATION_PREFIX};

const HEAD: &str = "# Settings

What one may choose besides the MiniCluster itself. Later layers win: built-in, `settings` of the project file, `settings` of
a cluster there, an annotation `flux-gen.dev/<key>` of the MiniCluster, `--set key=value` on the command line.
`flux-gen explain settings` prints each value and where it came from.

```yaml
# flux-gen.yaml
settings:
  kubernetes-version: \"1.31\"
clusters:
  hpc/lammps:
    settings:
      cpus: exclusive
```

This page is made from the table in `src/model/settings.rs`; `tests/docs.rs` keeps them equal.

";

fn settings_page() -> String {
    let mut page = HEAD.to_owned();
    for setting in ALL {
        writeln!(page, "## {}\n\n{}\n", setting.key, setting.doc).unwrap();
        let default = if setting.default.is_empty() { "not set".to_owned() } else { format!("`{}`", setting.default) };
        let whole =
            if setting.per_cluster { String::new() } else { " For the whole project only: no annotation.".to_owned() };
        writeln!(page, "Values: {}. Default: {default}.{whole}\n", setting.values.replace(" | ", ", ")).unwrap();
    }
    format!("{}\n", page.trim_end())
}

#[test]
fn the_page_of_settings_is_the_table() {
    assert!(HEAD.contains(ANNOTATION_PREFIX));
    let page = settings_page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("settings.md");
    fs::write(&made, &page).unwrap();
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "docs/settings.md is out of date: cp {} {}", made.display(), path.display());
}
