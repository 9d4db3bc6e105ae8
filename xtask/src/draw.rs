//! `cargo xtask docs`: draws the pictures of the documentation from text. Each picture contains the text that it was drawn from. The step
//! `documents` compares that with the present text, without drawing.

use std::process::ExitCode;

use crate::shell::{Cmd, StepOutput, ask, root};
use crate::steps::SuiteRun;
use crate::tools;

/// The folder of the texts, the pictures and the program that draws them.
const FOLDER: &str = "docs/diagrams";

/// Draws every picture.
pub(crate) fn run() -> ExitCode {
    let run = SuiteRun::new(false);
    let _ = run.step("setup: packages of pictures", |log| tools::npm_ci(log, FOLDER))
        && run.step("pictures", |log: &mut StepOutput| {
            log.run(Cmd::new("node render.mjs").within(FOLDER))?;
            check().map(|count| format!("{count} pictures"))
        });
    run.finish()
}

/// Compares the text in each picture with the file that the text is from. Returns the number of pictures.
pub(crate) fn check() -> Result<usize, String> {
    let list = ask("git", &["ls-files", "--cached", "--others", "--exclude-standard", FOLDER]);
    let list = list.ok_or("git is missing")?;
    let with = |ending: &'static str| list.lines().filter(move |name| name.ends_with(ending));
    let mut wrong: Vec<String> = Vec::new();
    // A text without a picture.
    for text in with(".d2") {
        let picture = text.replace(".d2", ".svg");
        if !root().join(&picture).exists() {
            wrong.push(picture);
        }
    }
    for picture in with(".svg") {
        let svg = read(picture)?;
        let parts = sources(&svg);
        let fits = |(path, part): &(&str, &str)| Ok::<_, String>(is_part(&read(path)?, path, part));
        let fits = parts.iter().map(fits).collect::<Result<Vec<_>, _>>()?;
        if fits.is_empty() || fits.contains(&false) {
            wrong.push(picture.into());
        }
    }
    if wrong.is_empty() {
        return Ok(with(".svg").count());
    }
    Err(format!(
        "pictures that do not belong to their text: run cargo xtask docs\n    {}",
        wrong.join("\n    ")
    ))
}

/// The content of a file of the repository.
fn read(name: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(name)).map_err(|e| format!("{name}: {e}"))
}

/// The paths and texts that a picture was drawn from, as render.mjs writes them into it.
fn sources(svg: &str) -> Vec<(&str, &str)> {
    let parts = svg.split("<metadata data-source=\"").skip(1);
    parts
        .filter_map(|part| {
            let (path, rest) = part.split_once("\"><![CDATA[")?;
            Some((path, rest.split_once("]]></metadata>")?.0))
        })
        .collect()
}

/// Whether a part is the whole text of a diagram, or a whole table of a page.
fn is_part(text: &str, path: &str, part: &str) -> bool {
    if path.ends_with(".md") { text.contains(&format!("\n\n{part}\n\n")) } else { text == part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_belongs_to_the_text_that_it_holds() {
        let svg = "<svg><metadata data-source=\"a.d2\"><![CDATA[a -> b\n]]></metadata><rect/></svg>";
        assert_eq!(sources(svg), [("a.d2", "a -> b\n")]);
        assert!(is_part("a -> b\n", "a.d2", "a -> b\n"));
        assert!(!is_part("a -> b\nb -> c\n", "a.d2", "a -> b\n"));
    }

    #[test]
    fn a_chart_belongs_to_the_whole_table() {
        let page = "Text:\n\n| a |\n|---|\n| 1 |\n\nText.";
        assert!(is_part(page, "a.md", "| a |\n|---|\n| 1 |"));
        assert!(!is_part(&page.replace("| 1 |", "| 1 |\n| 2 |"), "a.md", "| a |\n|---|\n| 1 |"));
        assert!(!is_part(&page.replace('1', "2"), "a.md", "| a |\n|---|\n| 1 |"));
    }
}
