use super::*;
use crate::diag::SourceMap;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const VIEW: &str = "
platforms: [linux/amd64, linux/arm64]
recipe: r
helper: {linux/amd64: busybox-amd64, linux/arm64: busybox-arm64}
tags:
  - name: tag-9
  - {name: arm-9, platform: linux/arm64}
";
const RECIPE: &str = "
kind: tree
trees:
  linux/amd64: {path: a}
  linux/arm64: {path: b, prefix: /opt/software/flux/}
";

fn run(view: &str, recipe: &str) -> (Option<Plan>, Vec<&'static str>) {
    let mut sources = SourceMap::new();
    let (view, mut found) = View::read(&mut sources, "view.yaml", view.as_bytes().to_vec());
    let (recipe, more) = Recipe::read(&mut sources, "recipe.yaml", recipe.as_bytes().to_vec());
    found.extend(more);
    let (plan, more) = resolve("rocky", &view, &recipe);
    found.extend(more);
    (plan, found.sorted().iter().map(|d| d.code.id).collect())
}

#[test]
fn a_view_with_defaults() {
    let (plan, found) = run(VIEW, RECIPE);
    assert_eq!(found, Vec::<&str>::new());
    let plan = plan.unwrap();
    assert_eq!(plan.inputs.len(), 2);
    assert!(matches!(&plan.inputs[1].1, Input::Tree { prefix: Some(p), .. } if p == "opt/software/flux"));
    assert_eq!((plan.budget, plan.compression, plan.xattrs), (12, Compression::Gzip, Xattrs::None));
    assert_eq!(plan.exclude, ["__pycache__"]);
    assert_eq!(plan.tags[1], TagPlan { name: "arm-9".to_owned(), platform: Some(Platform::linux("arm64")) });
}

#[test]
fn an_image_packed_anew() {
    let recipe = format!("kind: image\nimage: ghcr.io/x/flux-view@{DIGEST}\n");
    let (plan, found) = run(VIEW, &recipe);
    assert_eq!(found, Vec::<&str>::new());
    assert!(plan.unwrap().inputs.iter().all(|(_, input)| matches!(input, Input::Image(_))));
}

#[test]
fn mistakes() {
    let with = |line: &str| format!("{VIEW}{line}\n");
    for (view, recipe, expect) in [
        (with("compression: lzma"), RECIPE.to_owned(), &["FG808"][..]),
        (with("xattrs: all\nsetuid: x\noutsideLinks: sure"), RECIPE.to_owned(), &["FG808", "FG808", "FG808"]),
        (with("budget: 0"), RECIPE.to_owned(), &["FG809", "FG824"]),
        (with("budget: 101"), RECIPE.to_owned(), &["FG809"]),
        (with("glibc: new"), RECIPE.to_owned(), &["FG809"]),
        (with("budget: 2\nlayers: [{name: a, packages: [x]}, {name: b, paths: [q]}]"), RECIPE.to_owned(), &["FG824"]),
        (with("layers: [{name: a}, {name: a, paths: [q]}]"), RECIPE.to_owned(), &["FG807", "FG807"]),
        (with("repository: ghcr.io/x/y:tag"), RECIPE.to_owned(), &["FG806"]),
        (with("base: docker.io/library/rocky:9"), RECIPE.to_owned(), &["FG803", "FG803"]),
        (VIEW.replace("tag-9", "\"-9\""), RECIPE.to_owned(), &["FG806"]),
        (VIEW.replace("tag-9", "arm-9"), RECIPE.to_owned(), &["FG806"]),
        (VIEW.replace("platform: linux/arm64", "platform: linux/ppc64le"), RECIPE.to_owned(), &["FG806"]),
        (
            VIEW.replace("[linux/amd64, linux/arm64]", "[linux/amd64, linux/arm64, windows/amd64]"),
            RECIPE.to_owned(),
            &["FG802"],
        ),
        (
            VIEW.replace("[linux/amd64, linux/arm64]", "[linux/amd64, amd64, linux/arm64]"),
            RECIPE.to_owned(),
            &["FG802"],
        ),
        (VIEW.replace(", linux/arm64: busybox-arm64", ""), RECIPE.to_owned(), &["FG803"]),
        (VIEW.to_owned(), "kind: spack\n".to_owned(), &["FG805"]),
        (VIEW.to_owned(), "kind: source\n".to_owned(), &["FG805"]),
        (VIEW.to_owned(), "kind: magic\n".to_owned(), &["FG804"]),
        (VIEW.to_owned(), format!("{RECIPE}image: x@{DIGEST}\n"), &["FG804"]),
        (VIEW.to_owned(), RECIPE.replace("linux/arm64", "linux/ppc64le"), &["FG804"]),
        (VIEW.to_owned(), RECIPE.replace("/opt/software/flux/", "/usr"), &["FG804"]),
        (VIEW.to_owned(), RECIPE.replace("/opt/software/flux/", "/opt/software/../x"), &["FG804"]),
        (VIEW.to_owned(), "kind: image\nimage: ghcr.io/x/y:latest\n".to_owned(), &["FG804"]),
        (VIEW.to_owned(), "kind: image\n".to_owned(), &["FG804", "FG804"]),
    ] {
        assert_eq!(run(&view, &recipe).1, expect, "{view}{recipe}");
    }
}
