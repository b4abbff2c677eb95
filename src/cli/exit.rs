//! Exit codes: the only place that picks and documents them.

use std::process::ExitCode;

/// How a run of the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done; warnings do not change it.
    Ok,
    /// An error in the input, or an operation that failed.
    Failed,
    /// The command line was not understood.
    Usage,
    /// Something generated is not what the sources give: the output folder, a lock, the file of a GitOps tool.
    Drift,
    /// A bug in flux-gen.
    Bug,
}

impl Exit {
    /// All of them, in the order of their codes.
    pub(crate) const ALL: [Self; 5] = [Self::Ok, Self::Failed, Self::Usage, Self::Drift, Self::Bug];

    /// The process exit code. 70 is `EX_SOFTWARE` of sysexits.h.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Drift => 3,
            Self::Bug => 70,
        }
    }

    /// What `explain exit-codes` and the man page say.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "Done. There may have been warnings.",
            Self::Failed => {
                "The input has errors, or an operation failed (a file that cannot be read, say). Nothing was written; of what \
                 was sent to a registry, no tag stands for a part."
            }
            Self::Usage => "The command line was not understood.",
            Self::Drift => {
                "Something is not up to date, and was not written: the output folder (`check`, `diff`, `publish`), a lock \
                 (`lock --check`, `recipe lock --check`), a file (`gitops --check`); or `view diff` found differences."
            }
            Self::Bug => "A bug in flux-gen. Please report it; no input should do this.",
        }
    }

    /// The table as text, one line per code.
    pub(crate) fn table() -> String {
        Self::ALL.iter().map(|exit| format!("{:>3}  {}\n", exit.code(), exit.meaning())).collect()
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn codes_are_the_documented_ones() {
        assert_eq!(Exit::ALL.map(Exit::code), [0, 1, 2, 3, 70]);
        assert_eq!(Exit::table().lines().count(), 5);
    }
}
