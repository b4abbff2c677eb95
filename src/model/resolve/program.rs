//! What the leader runs.

use super::Size;
use super::containers::{command_words, runner_spec};
use super::cores::{affinity_flags, cores};
use super::written::{flag, number, text};
use crate::diag::Diagnostics;
use crate::model::settings::Settings;
use crate::model::words;
use crate::model::{Program, Submission, Words};
use crate::spec::minicluster::{Container, MiniClusterSpec};

/// Resolves the mode: diagnostics, interactive, none, launcher, batch or submit, in this order.
pub(super) fn program(spec: &MiniClusterSpec, runner: usize, size: Size, settings: &Settings) -> Program {
    let default = Container::default();
    let container = runner_spec(spec, runner).map_or(&default, |c| &c.value);
    let cores = cores(spec, runner, size, settings, &mut Diagnostics::new());
    let affinity = affinity_flags(spec, cores);
    let script = container.commands.as_ref().and_then(|c| text(&c.script));
    let command = text(&container.command);
    if flag(&container.diagnostics) {
        return Program::Diagnostics;
    }
    if flag(&spec.interactive) {
        return Program::None;
    }
    let words = match (command, script) {
        (Some(command), _) => command_words(command),
        (None, Some(_)) => Words::Script,
        (None, None) => return Program::Shell,
    };
    if flag(&container.launcher) || flag(&spec.launcher) {
        return Program::Launcher(words);
    }
    let submission = submission(spec, size, affinity.clone(), words);
    if flag(&container.batch) {
        let text = command.or(script).unwrap_or_default();
        let script = if flag(&container.batch_raw) || command.is_none() {
            raw_batch(text)
        } else {
            batch(text, &submission.submit, &affinity, text_or(&container.logs, "/tmp/fluxout"))
        };
        return Program::Batch { script, submission };
    }
    Program::Submit(submission)
}

fn text_or<'a>(value: &'a Option<crate::spec::Spanned<String>>, default: &'a str) -> &'a str {
    text(value).unwrap_or(default)
}

fn submission(spec: &MiniClusterSpec, size: Size, affinity: Vec<String>, command: Words) -> Submission {
    let flux = spec.flux.as_ref();
    let submit = flux.and_then(|f| text(&f.submit_command)).and_then(words::split);
    let mut flags = flux.and_then(|f| text(&f.option_flags)).and_then(words::split).unwrap_or_default();
    flags.extend(affinity);
    if spec.logging.as_ref().is_some_and(|l| flag(&l.debug)) {
        flags.push("-vvv".to_owned());
    }
    Submission {
        submit: submit.unwrap_or_else(|| vec!["flux".to_owned(), "submit".to_owned()]),
        nodes: node_flags(number(&spec.tasks).unwrap_or(1), size.pods),
        flags,
        command,
    }
}

/// 0 tasks: `-N size`; at least one for each node: `-N size -n tasks`; fewer: `-n tasks` (quirk 84).
pub(super) fn node_flags(tasks: u32, pods: u32) -> Vec<String> {
    let nodes = ["-N".to_owned(), pods.to_string()];
    match tasks {
        0 => nodes.to_vec(),
        tasks if tasks >= pods => [nodes.to_vec(), vec![format!("-n{tasks}")]].concat(),
        tasks => vec![format!("-n{tasks}")],
    }
}

/// Each line is one job, numbered by its line; what a shell reads as one line stays one line. The script fails when a
/// line or a job fails.
fn batch(text: &str, submit: &[String], affinity: &[String], logs: &str) -> String {
    let mut script = "#!/bin/bash\nstatus=0\ntrap 'status=1' ERR\n".to_owned();
    let mut continues = false;
    for (number, line) in text.lines().enumerate() {
        let words = line.trim();
        if continues || words.is_empty() || words.starts_with('#') {
            script.push_str(line);
        } else {
            let output = |kind: &str| words::quote(&format!("{logs}/job-{number}.{kind}"));
            script.push_str(&words::join(submit));
            script.push_str(&format!(" --flags waitable --error={} --output={} ", output("err"), output("out")));
            for word in affinity {
                script.push_str(&words::quote(word));
                script.push(' ');
            }
            script.push_str(line.trim_start());
        }
        script.push('\n');
        continues = line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1;
    }
    script.push_str("flux queue idle\nflux jobs -a\nflux job wait --all\nexit \"$status\"\n");
    script
}

/// The script as it stands; jobs that it submitted as waitable and did not wait for still count.
fn raw_batch(text: &str) -> String {
    let shebang = if text.starts_with("#!") { "" } else { "#!/bin/bash\n" };
    let end = "status=$?\nflux job wait --all || exit 1\nexit \"$status\"\n";
    format!("{shebang}{}\n{end}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_flags_follow_the_documents() {
        for (tasks, pods, flags) in
            [(0, 4, "-N 4"), (1, 1, "-N 1 -n1"), (1, 4, "-n1"), (4, 4, "-N 4 -n4"), (16, 4, "-N 4 -n16")]
        {
            assert_eq!(node_flags(tasks, pods).join(" "), flags);
        }
    }

    #[test]
    fn batch_lines_are_jobs_numbered_by_line() {
        let submit = ["flux".to_owned(), "submit".to_owned()];
        let script = batch("echo one\n\n# note\necho \"three\" $HOME \\\n  more\n", &submit, &[], "/l o");
        let lines: Vec<_> = script.lines().collect();
        assert_eq!(
            lines[3],
            "flux submit --flags waitable --error='/l o/job-0.err' --output='/l o/job-0.out' echo one"
        );
        assert_eq!(lines[4], "");
        assert_eq!(lines[5], "# note");
        assert!(lines[6].ends_with("job-3.out' echo \"three\" $HOME \\"), "{}", lines[6]);
        assert_eq!(lines[7], "  more");
        assert_eq!(lines.last(), Some(&"exit \"$status\""));
    }
}
