//! The shell scripts of a build: the only templates. Words reach a shell quoted, unless their field is documented as shell.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::model::words::quote;

const SOURCES: [(&str, &str); 4] = [
    ("system.sh", include_str!("templates/system.sh")),
    ("step.sh", include_str!("templates/step.sh")),
    ("run.sh", include_str!("templates/run.sh")),
    ("contract.sh", include_str!("templates/contract.sh")),
];

/// A template that does not fit its values: a bug that a test over the shipped recipes rules out.
#[derive(Debug, thiserror::Error)]
#[error("the script {script} cannot be rendered: {source}")]
pub struct ScriptError {
    script: String,
    source: minijinja::Error,
}

/// The parsed templates.
pub(super) struct Scripts(Environment<'static>);

impl Scripts {
    pub(super) fn new() -> Result<Self, ScriptError> {
        let failed = |script: &str, source| ScriptError { script: script.to_owned(), source };
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
        environment.set_syntax(syntax.map_err(|e| failed("syntax", e))?);
        environment.add_filter("sh", |text: String| quote(&text));
        for (name, source) in SOURCES {
            environment.add_template(name, source).map_err(|e| failed(name, e))?;
        }
        Ok(Self(environment))
    }

    pub(super) fn render(&self, name: &str, values: &Value) -> Result<String, ScriptError> {
        let rendered = self.0.get_template(name).and_then(|template| template.render(values));
        rendered.map_err(|source| ScriptError { script: name.to_owned(), source })
    }
}
