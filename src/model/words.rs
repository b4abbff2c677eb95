//! A command line as the user wrote it: plain words where it is only words, shell text where it needs a shell.
//!
//! The operator splits commands at blanks and keeps quotes as letters (quirks 75 and 96). Users mean what a shell would
//! make of the text. So a command that is only words and quotes becomes an argument vector at build time, and one that
//! uses the shell (`$`, `|`, `;`, globs, several lines) is run by bash as it stands.

/// What a command text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandText {
    /// Only words, quoted or not: the argument vector.
    Words(Vec<String>),
    /// Shell syntax: to be run by `bash -c`.
    Shell(String),
    /// A quote is open at the end, so no shell could read it: words split at blanks, quotes as letters.
    OpenQuote(Vec<String>),
}

/// Characters that mean something to a shell when they are not quoted.
const SPECIAL: &[char] = &['$', '`', '|', '&', ';', '<', '>', '(', ')', '*', '?', '[', '\n', '#', '~', '{'];

/// Tells words from shell text.
#[must_use]
pub fn classify(text: &str) -> CommandText {
    let text = text.trim();
    match scan(text) {
        Scan::Words(words) if !is_assignment(words.first()) => CommandText::Words(words),
        Scan::OpenQuote => CommandText::OpenQuote(text.split_whitespace().map(str::to_owned).collect()),
        _ => CommandText::Shell(text.to_owned()),
    }
}

/// Splits flags, prefixes and the like (documented as words) into words; `None` when a quote is open.
#[must_use]
pub fn split(text: &str) -> Option<Vec<String>> {
    shlex::split(text)
}

/// Quotes one word for a shell.
#[must_use]
pub fn quote(word: &str) -> String {
    if !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&b)) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes words and joins them with blanks.
#[must_use]
pub fn join<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|w| quote(w.as_ref())).collect::<Vec<_>>().join(" ")
}

enum Scan {
    Words(Vec<String>),
    Shell,
    OpenQuote,
}

fn scan(text: &str) -> Scan {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut shell = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let w = word.get_or_insert_default();
                if !take_single_quoted(&mut chars, w) {
                    return Scan::OpenQuote;
                }
            }
            '"' => {
                let w = word.get_or_insert_default();
                match take_double_quoted(&mut chars, w) {
                    Quoted::Plain => {}
                    Quoted::Expands => shell = true,
                    Quoted::Open => return Scan::OpenQuote,
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => shell = true,
                Some(next) => word.get_or_insert_default().push(next),
            },
            '#' | '~' if word.is_some() => word.get_or_insert_default().push(c),
            '{' if !brace_expands(&chars) => word.get_or_insert_default().push(c),
            c if SPECIAL.contains(&c) => {
                shell = true;
                word.get_or_insert_default().push(c);
            }
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if shell { Scan::Shell } else { Scan::Words(words) }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn take_single_quoted(chars: &mut Chars<'_>, word: &mut String) -> bool {
    for c in chars.by_ref() {
        if c == '\'' {
            return true;
        }
        word.push(c);
    }
    false
}

enum Quoted {
    Plain,
    Expands,
    Open,
}

fn take_double_quoted(chars: &mut Chars<'_>, word: &mut String) -> Quoted {
    let mut expands = false;
    while let Some(c) = chars.next() {
        match c {
            '"' => return if expands { Quoted::Expands } else { Quoted::Plain },
            '$' | '`' => {
                expands = true;
                word.push(c);
            }
            '\\' => match chars.peek() {
                Some('$' | '`' | '"' | '\\') => word.extend(chars.next()),
                _ => word.push('\\'),
            },
            c => word.push(c),
        }
    }
    Quoted::Open
}

/// `{a,b}` and `{1..3}` expand, a lone brace does not.
fn brace_expands(rest: &Chars<'_>) -> bool {
    let inside: String = rest.clone().take_while(|c| *c != '}' && !c.is_whitespace()).collect();
    let closed = rest.clone().nth(inside.chars().count()) == Some('}');
    closed && (inside.contains(',') || inside.contains(".."))
}

/// `NAME=value program` sets a variable for the program: only a shell does that.
fn is_assignment(first: Option<&String>) -> bool {
    first.and_then(|word| word.split_once('=')).is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_and_shell_are_told_apart() {
        let words = |list: &[&str]| CommandText::Words(list.iter().map(|s| (*s).to_owned()).collect());
        let shell = |s: &str| CommandText::Shell(s.to_owned());
        for (text, expected) in [
            ("echo hello", words(&["echo", "hello"])),
            ("  lmp  -v x 2\n", words(&["lmp", "-v", "x", "2"])),
            ("echo \"a b\" 'c  d' e\\ f", words(&["echo", "a b", "c  d", "e f"])),
            ("echo \"\\$5 \\\"x\\\"\" 'it is $5'", words(&["echo", "$5 \"x\"", "it is $5"])),
            ("echo a#b x~ 100% ü", words(&["echo", "a#b", "x~", "100%", "ü"])),
            ("echo {} a{b}", words(&["echo", "{}", "a{b}"])),
            ("echo ''", words(&["echo", ""])),
            ("prog --opt=1", words(&["prog", "--opt=1"])),
            ("echo $HOME", shell("echo $HOME")),
            ("echo \"$HOME\"", shell("echo \"$HOME\"")),
            ("a && b", shell("a && b")),
            ("ls *.txt", shell("ls *.txt")),
            ("echo {a,b}", shell("echo {a,b}")),
            ("ls ~/x", shell("ls ~/x")),
            ("echo one\necho two\n", shell("echo one\necho two")),
            ("OMP_NUM_THREADS=2 lmp", shell("OMP_NUM_THREADS=2 lmp")),
            ("echo it's fine", CommandText::OpenQuote(vec!["echo".into(), "it's".into(), "fine".into()])),
            ("", words(&[])),
        ] {
            assert_eq!(classify(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn quoting_survives_a_shell(words in proptest::collection::vec("[^\0]{0,12}", 1..6)) {
            prop_assert_eq!(shlex::split(&join(&words)), Some(words));
        }

        #[test]
        fn classify_agrees_with_a_posix_splitter(text in "[a-z '\"\\\\]{0,20}") {
            if let CommandText::Words(words) = classify(&text) {
                prop_assert_eq!(Some(words), shlex::split(text.trim()));
            }
        }

        #[test]
        fn classify_never_panics(text in "\\PC*") {
            let _ = classify(&text);
        }
    }
}
