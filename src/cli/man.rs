//! `flux-gen man`.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};

use super::args::CommandLine;
use super::error::CommandError;
use super::exit::Exit;
use super::ui::Ui;

/// Print the manual page, or write one page per command into a folder.
///
/// Read it with `flux-gen man | man -l -`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for `flux-gen.1`, `flux-gen-build.1` and so on; made if it is not there.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut command = CommandLine::command();
    command.build();
    let Some(folder) = &args.folder else {
        ui.print(&page(&command)?)?;
        return Ok(Exit::Ok);
    };
    std::fs::create_dir_all(folder).map_err(|e| CommandError::file("create", folder, &e))?;
    let mut count = 0;
    write_pages(&command, folder, &mut count)?;
    ui.status(&format!("wrote {} to {}", super::report::plural(count, "page"), folder.display()));
    Ok(Exit::Ok)
}

fn write_pages(command: &clap::Command, folder: &Path, count: &mut usize) -> Result<(), CommandError> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command)?).map_err(|e| CommandError::file("write", &path, &e))?;
    *count += 1;
    for sub in command.get_subcommands() {
        write_pages(sub, folder, count)?;
    }
    Ok(())
}

/// One page. The date is left out, so that the same program gives the same page.
fn page(command: &clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut text = Vec::new();
    let man = clap_mangen::Man::new(command.clone()).date("").manual("flux-gen");
    let exits = format!(".SH \"EXIT STATUS\"\n{}", exit_status());
    man.render(&mut text)
        .and_then(|()| std::io::Write::write_all(&mut text, exits.as_bytes()))
        .map_err(|e| CommandError::operation(format!("cannot make the manual page: {e}")))?;
    Ok(text)
}

/// The exit codes in roff.
fn exit_status() -> String {
    Exit::ALL
        .iter()
        .map(|exit| format!(".TP\n{}\n{}\n", exit.code(), exit.meaning().replace('\\', "\\\\").replace('-', "\\-")))
        .collect()
}
