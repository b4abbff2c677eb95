//! `FG7xx`: finding and reading input files.

super::codes! {
    PATH_UNREADABLE = "FG701", "path cannot be read", "A file or folder that was named, on the command line or under `sources` of the project file, is not there or cannot be read. Nothing is written as long as an input is missing: what it would have described would be taken for removed.";
    NO_SPECS = "FG702", "folder without specs", "A folder that was named holds no file that ends in .yaml, .yml or .json. Hidden files and folders, folders called `generated` and the output folder are passed over.";
    STDIN_TWICE = "FG703", "standard input named twice", "`-` stands for standard input, which can be read only once.";
}
