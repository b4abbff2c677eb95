//! `flux-gen explain`.

mod field;
mod settings;

use clap::Args;

use super::error::CommandError;
use super::exit::Exit;
use super::pipeline::InputArgs;
use super::ui::Ui;
use crate::diag::{Code, codes};
use crate::model::kubernetes;
use field::Answer;

/// Explain a field, a message code, the settings, Kubernetes versions or the exit codes.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A field such as `containers.command`, a code such as `FG101`, `settings` (with their values and where these come
    /// from), one setting, `kubernetes-versions` (what is written for which), or `exit-codes`; without it, all codes are
    /// listed.
    #[arg(value_name = "TOPIC", help_heading = "Arguments")]
    topic: Option<String>,
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &ExplainArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let text = match args.topic.as_deref() {
        None => list(),
        Some("settings") => return settings::run(&args.input, ui),
        Some("exit-codes") => Exit::table(),
        Some("kubernetes-versions") => kubernetes::table(),
        Some(topic) => topic_page(topic)?,
    };
    ui.print(text.as_bytes())?;
    Ok(Exit::Ok)
}

/// A code by its id, in any case.
fn find_code(topic: &str) -> Option<Code> {
    codes::all().into_iter().find(|code| code.id.eq_ignore_ascii_case(topic))
}

fn page(code: Code) -> String {
    format!("{}: {}\n\n{}\n", code.id, code.title, wrap(code.explanation, 80))
}

fn list() -> String {
    codes::all().iter().map(|code| format!("{}  {}\n", code.id, code.title)).collect()
}

/// A code, a field or a setting; the last two may have the same name.
fn topic_page(topic: &str) -> Result<String, CommandError> {
    if let Some(code) = find_code(topic) {
        return Ok(page(code));
    }
    match (field_page(topic), settings::page(topic)) {
        (Ok(field), Some(setting)) => Ok(format!("{field}\n{setting}")),
        (Err(_), Some(setting)) => Ok(setting),
        (field, None) => field,
    }
}

fn field_page(topic: &str) -> Result<String, CommandError> {
    match field::answer(topic) {
        Answer::Page(page) => Ok(page),
        Answer::Several(paths) => Ok(format!("There are several; ask for one of them:\n\n  {}\n", paths.join("\n  "))),
        Answer::None(near) => Err(unknown(topic, near)),
    }
}

fn unknown(topic: &str, near: Option<String>) -> CommandError {
    let error = CommandError::usage(format!("there is nothing to explain under `{topic}`"));
    match near {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if topic.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("fg")) => {
            error.help("`flux-gen explain` lists all codes")
        }
        None => error.help(
            "give a field such as spec.size, a code such as FG101, `settings`, `kubernetes-versions` or `exit-codes`",
        ),
    }
}

/// Breaks a text into lines of at most `width` characters at spaces; line ends in the text stay.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / width);
    for (i, paragraph) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let mut column = 0;
        for word in paragraph.split(' ') {
            let length = word.chars().count();
            if column > 0 && column + 1 + length > width {
                out.push('\n');
                column = 0;
            } else if column > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_in_any_case() {
        assert_eq!(find_code("fg101"), Some(codes::syntax::YAML_SYNTAX));
        assert_eq!(find_code("FG999"), None);
    }

    #[test]
    fn wrapping() {
        assert_eq!(wrap("aa bb cc", 5), "aa bb\ncc");
        assert_eq!(wrap("aaaaaaa b", 5), "aaaaaaa\nb");
        assert_eq!(wrap("a\n\nb", 5), "a\n\nb");
    }
}
