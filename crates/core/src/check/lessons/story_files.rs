//! Which files a story talks about.

use verdone_plan::Story;

/// Whether the story's text or one of its checks names the file, by its path or by its name.
pub fn story_names_file(story: &Story, file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let texts = [story.title.as_str(), story.body.as_str()].into_iter();
    let criteria = story.criteria.iter().map(|criterion| criterion.text.as_str());
    let checks = story.checks.iter().map(String::as_str);
    texts.chain(criteria).chain(checks).any(|text| {
        let words = text.split(|sign: char| sign.is_whitespace() || "`'\"()[]{}<>,;:=|&".contains(sign));
        let mut words = words.map(|word| word.trim_start_matches("./").trim_end_matches('.'));
        // A name without an ending is too often an ordinary word.
        words.any(|word| word == file || (word == name && name.contains('.')))
    })
}
