//! Serves the files of the admin page, which are compiled into the program.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

/// Media type of the modules.
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, media type and text of each file.
const FILES: [(&str, &str, &str); 10] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/admin.css", "text/css; charset=utf-8", include_str!("page/admin.css")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/main.js", SCRIPT, include_str!("page/main.js")),
    ("/api.js", SCRIPT, include_str!("page/api.js")),
    ("/chart.js", SCRIPT, include_str!("page/chart.js")),
    ("/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/forms.js", SCRIPT, include_str!("page/forms.js")),
    ("/health.js", SCRIPT, include_str!("page/health.js")),
    ("/keys.js", SCRIPT, include_str!("page/keys.js")),
];

/// A route for each file.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.into_iter().fold(Router::new(), |router, (path, media_type, text)| {
        router.route(path, get(move || std::future::ready(([(CONTENT_TYPE, media_type)], text))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup_and_no_other_server_is_named() {
        for (path, _, text) in FILES {
            for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Storage"]
            {
                assert!(!text.contains(word), "{path}: {word}");
            }
            let others = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!others.contains("http://") && !others.contains("https://"), "{path}");
            assert!(!others.contains("style=") && !others.contains(" onclick="), "{path}: inline");
        }
    }

    #[test]
    fn every_imported_file_exists() {
        for (path, _, text) in FILES.into_iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let name = line.split('\'').nth(1).and_then(|name| name.strip_prefix('.')).unwrap();
                assert!(FILES.iter().any(|(known, ..)| *known == name), "{path} imports {name}");
            }
        }
    }
}
