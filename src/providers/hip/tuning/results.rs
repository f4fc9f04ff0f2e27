//! What tuning found, and its text form, which docs/tuning.md describes.

use std::collections::BTreeMap;

/// The first line of a text.
const TITLE: &str = "rukh tuning results 1";

/// What a choice depends on besides the problem, by name: versions and device.
pub(super) type Validators = Vec<(&'static str, String)>;

/// The names of those, each of which a text must have.
pub(super) const CONDITIONS: [&str; 6] = ["rukh", "kernels", "arch", "device", "runtime", "libraries"];

/// Operator and problem, each a word.
pub(super) type Key = (String, String);

/// The fastest way to solve a problem.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fastest {
    /// The candidate's name, a word.
    pub(super) candidate: String,
    pub(super) microseconds: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Results(pub(super) BTreeMap<Key, Fastest>);

impl Results {
    pub(super) fn text(&self, validators: &[(&'static str, String)]) -> String {
        let mut text = format!("{TITLE}\n");
        for (name, value) in validators {
            text += &format!("validate {name} {value}\n");
        }
        for ((operator, problem), fastest) in &self.0 {
            let Fastest { candidate, microseconds } = fastest;
            text += &format!("result {operator} {problem} {candidate} {microseconds:.3}\n");
        }
        text
    }

    /// Reads a text. Lines that cannot be read are left out, and told in the second list. `Err` says why
    /// nothing of the text can be used: it is something else, or was made under other conditions.
    pub(super) fn parse(
        text: &str,
        validators: &[(&'static str, String)],
    ) -> Result<(Self, Vec<String>), String> {
        let Read { results, conditions, defects } = Read::of(text)?;
        for (name, here) in validators {
            // A name that this version does not know says nothing against the results.
            let mut own = conditions.iter().filter(|(known, _)| known == name).peekable();
            if own.peek().is_none() {
                return Err(missing(name));
            }
            if let Some((_, value)) = own.find(|(_, value)| value != here) {
                return Err(format!("{name} is \"{}\" in it, and \"{here}\" here", shortened(value)));
            }
        }
        Ok((results, defects))
    }
}

/// A text that was read, and not yet compared with what is here.
pub(super) struct Read<'t> {
    pub(super) results: Results,
    /// Names and values of `validate` lines.
    pub(super) conditions: Vec<(&'t str, &'t str)>,
    /// What is wrong with lines that were left out.
    pub(super) defects: Vec<String>,
}

impl<'t> Read<'t> {
    /// `Err`: it is something else.
    pub(super) fn of(text: &'t str) -> Result<Self, String> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(i, line)| (i + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        match lines.next() {
            Some((_, TITLE)) => {}
            Some((_, other)) => {
                return Err(format!("the first line is \"{}\"; it must be \"{TITLE}\"", shortened(other)));
            }
            None => return Err(format!("the text is empty; its first line must be \"{TITLE}\"")),
        }
        let (mut results, mut conditions, mut defects) = (Results::default(), Vec::new(), Vec::new());
        for (number, line) in lines {
            match line.split_once(' ') {
                Some(("validate", rest)) => conditions.push(rest.split_once(' ').unwrap_or((rest, ""))),
                Some(("result", rest)) => match result(rest) {
                    Some((key, fastest)) => drop(results.0.insert(key, fastest)),
                    None => defects.push(format!(
                        "line {number}: \"{}\" is no result; a result is operator, problem, candidate, microseconds",
                        shortened(line)
                    )),
                },
                _ => defects.push(format!(
                    "line {number}: \"{}\" begins with neither \"validate\" nor \"result\"",
                    shortened(line)
                )),
            }
        }
        Ok(Read { results, conditions, defects })
    }
}

pub(super) fn missing(name: &str) -> String {
    format!("it has no line \"validate {name} …\"")
}

fn result(words: &str) -> Option<(Key, Fastest)> {
    let mut words = words.split_ascii_whitespace();
    let (operator, problem, candidate) = (words.next()?, words.next()?, words.next()?);
    let microseconds: f64 = words.next()?.parse().ok()?;
    if words.next().is_some() || !microseconds.is_finite() || microseconds < 0.0 {
        return None;
    }
    let key = (operator.to_owned(), problem.to_owned());
    Some((key, Fastest { candidate: candidate.to_owned(), microseconds }))
}

/// At most the first 80 characters, for a message.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validators() -> Validators {
        vec![("rukh", "0.1.0".to_owned()), ("arch", "gfx1100".to_owned()), ("runtime", "amd 6.2".to_owned())]
    }

    const HEAD: &str =
        "rukh tuning results 1\nvalidate rukh 0.1.0\nvalidate arch gfx1100\nvalidate runtime amd 6.2\n";

    #[test]
    fn text_comes_back() {
        let mut results = Results::default();
        for (problem, candidate, microseconds) in [("m1", "a/4", 12.5), ("m2", "lib:00ff", 0.25)] {
            let key = ("gemm".to_owned(), problem.to_owned());
            results.0.insert(key, Fastest { candidate: candidate.to_owned(), microseconds });
        }
        let text = results.text(&validators());
        assert_eq!(text, format!("{HEAD}result gemm m1 a/4 12.500\nresult gemm m2 lib:00ff 0.250\n"));
        assert_eq!(Results::parse(&text, &validators()), Ok((results, Vec::new())));
    }

    #[test]
    fn other_conditions_are_told() {
        let with = |from: &str, to: &str| HEAD.replace(from, to);
        for (text, part) in [
            (String::new(), "the text is empty"),
            ("{\"results\": []}".to_owned(), "the first line is \"{\"results"),
            (with("results 1", "results 2"), "must be \"rukh tuning results 1\""),
            (with("gfx1100", "gfx942"), "arch is \"gfx942\" in it, and \"gfx1100\" here"),
            (with("0.1.0", "0.2.0"), "rukh is \"0.2.0\" in it"),
            (with("amd 6.2", "amd 7.0"), "runtime is \"amd 7.0\" in it"),
            (with("validate arch gfx1100\n", ""), "it has no line \"validate arch"),
        ] {
            let reason = Results::parse(&text, &validators()).unwrap_err();
            assert!(reason.contains(part), "{text}: {reason}");
        }
    }

    #[test]
    fn damaged_lines_are_left_out() {
        for (line, taken, defect) in [
            ("result gemm p c 1.5", 1, None),
            ("# a remark\n\n  result gemm p c 1.5  ", 1, None),
            ("validate later 3", 0, None),
            ("result gemm p c", 0, Some("line 5: \"result gemm p c\" is no result")),
            ("result gemm p c fast", 0, Some("is no result")),
            ("result gemm p c NaN", 0, Some("is no result")),
            ("result gemm p c 1 2", 0, Some("is no result")),
            ("result gemm p c -1", 0, Some("is no result")),
            ("gemm p c 1", 0, Some("neither \"validate\" nor \"result\"")),
            ("\u{0}\u{1}", 0, Some("neither")),
        ] {
            let (results, defects) = Results::parse(&format!("{HEAD}{line}\n"), &validators()).unwrap();
            assert_eq!(results.0.len(), taken, "{line}");
            assert_eq!(defects.len(), usize::from(defect.is_some()), "{line}: {defects:?}");
            assert!(defect.is_none_or(|part| defects[0].contains(part)), "{line}: {defects:?}");
        }
    }
}
