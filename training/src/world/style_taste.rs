//! Taste in styles, patterns and cuts: where age, gender, body and stated preferences meet.

use super::{
    context::Context,
    leanings::style_leaning,
    lexicon::{BodyType, Fit, Gender, Pattern, Style, Word},
    occasion,
    profile::Profile,
};

/// What one preferred style is worth; several share it.
const STATED: f64 = 1.5;
/// How much of the leaning of their age, gender and country a customer is taken to share, where
/// styles are stated and where they are not.
const LEANING: [f64; 2] = [0.25, 0.75];

/// Two stated styles that together mean a third thing, and for whom.
#[rustfmt::skip]
const BLENDS: &[(Style, Style, Option<Gender>, Style, f64)] = {
    use Style::{Boho, Casual, Classic, Glamour, Minimal, Preppy, Rock, Romantic, Sporty, Street};
    &[
        (Classic, Sporty, None, Preppy, 0.9),
        (Rock, Romantic, None, Boho, 0.9),
        (Street, Glamour, None, Rock, 0.7),
        (Minimal, Street, Some(Gender::Male), Sporty, 0.6),
        (Minimal, Street, Some(Gender::Female), Classic, 0.5),
        (Casual, Glamour, Some(Gender::Female), Romantic, 0.6),
        (Classic, Rock, None, Minimal, 0.6),
        (Classic, Boho, Some(Gender::Female), Romantic, 0.7),
        (Sporty, Minimal, None, Street, 0.4),
    ]
};

pub(crate) fn style_taste(context: Context<'_>) -> [f64; Style::COUNT] {
    let profile = context.profile;
    let leaning = style_leaning(profile.gender, profile.age.map(f64::from), profile.country);
    let weight = LEANING[usize::from(profile.styles.is_empty())];
    // The young mean it: a stated style counts for more under thirty, for less past sixty.
    let conviction = match profile.age {
        Some(age) if age < 30 => 1.25,
        Some(age) if age > 60 => 0.8,
        _ => 1.0,
    };
    let stated = STATED * conviction / crate::number::real(profile.styles.len().max(1)).powf(0.35);
    let asked = &occasion::traits(context.occasion).styles;
    let mut taste = std::array::from_fn(|style| {
        let mut utility = weight * (leaning[style] * 10.0).ln().max(-3.0);
        if profile.styles.has_index(style) {
            utility += stated;
        }
        utility + asked[style]
    });
    for (one, other, whom, third, worth) in BLENDS {
        let both = profile.styles.has(*one) && profile.styles.has(*other);
        if both && (whom.is_none() || *whom == profile.gender) {
            taste[third.index()] += worth * conviction;
        }
    }
    // What was a statement at twenty is a costume at sixty, unless it was asked for.
    if profile.age.is_some_and(|age| age > 55) && !profile.styles.has(Style::Street) {
        taste[Style::Street.index()] -= 0.6;
    }
    taste
}

pub(crate) fn pattern_taste(context: Context<'_>) -> [f64; Pattern::COUNT] {
    let profile = context.profile;
    let mut taste = [0.0; Pattern::COUNT];
    let mut add = |pattern: Pattern, worth: f64| taste[pattern.index()] += worth;
    for style in profile.styles.iter() {
        match style {
            Style::Minimal => {
                add(Pattern::Plain, 0.5);
                add(Pattern::Floral, -0.7);
                add(Pattern::Printed, -0.7);
            }
            Style::Romantic | Style::Boho => add(Pattern::Floral, 0.7),
            Style::Preppy => {
                add(Pattern::Checked, 0.6);
                add(Pattern::Striped, 0.5);
            }
            Style::Street => add(Pattern::Printed, 0.6),
            Style::Rock => {
                add(Pattern::Printed, 0.3);
                add(Pattern::Floral, -0.5);
            }
            Style::Classic => add(Pattern::Printed, -0.5),
            Style::Casual | Style::Sporty | Style::Glamour => {}
        }
    }
    if profile.gender == Some(Gender::Male) {
        add(Pattern::Floral, -1.2);
        add(Pattern::Dotted, -0.6);
    }
    let age = profile.age.map_or(38.0, f64::from);
    add(Pattern::Printed, -0.02 * (age - 38.0).clamp(-15.0, 30.0));
    // Large checks and prints make large: past a size the stylist goes plain, or striped for the tall.
    if profile.is_large() {
        add(Pattern::Checked, -0.5);
        add(Pattern::Printed, -0.5);
        add(Pattern::Striped, if profile.height.is_some_and(|height| height > 180) { 0.3 } else { -0.2 });
    }
    for pattern in Pattern::ALL {
        add(*pattern, occasion::pattern(context.occasion, *pattern));
    }
    taste
}

/// Taste in cuts, above the waist and below it.
pub(crate) fn fit_taste(profile: &Profile, above: bool) -> [f64; Fit::COUNT] {
    /// By how far a cut is from the one that is wanted.
    const AWAY: [f64; Fit::COUNT] = [0.9, 0.0, -0.9, -1.8];
    let mut taste = [0.0; Fit::COUNT];
    if let Some(wanted) = profile.fit {
        for fit in Fit::ALL {
            taste[fit.index()] += AWAY[wanted.index().abs_diff(fit.index())];
        }
    }
    // slim, regular, relaxed, oversized
    let body = match (profile.apparent_body(), above) {
        (Some(BodyType::Slender), true) => [0.3, 0.1, 0.0, -0.2],
        (Some(BodyType::Athletic), _) => [0.4, 0.1, -0.1, -0.2],
        (Some(BodyType::Curvy), true) => [0.1, 0.3, 0.0, -0.4],
        (Some(BodyType::Curvy), false) => [-0.3, 0.3, 0.2, -0.3],
        (Some(BodyType::Broad), true) => [-0.8, 0.3, 0.3, 0.0],
        (Some(BodyType::Full), true) => [-1.3, 0.0, 0.6, 0.3],
        (Some(BodyType::Full), false) => [-0.9, 0.3, 0.4, -0.2],
        _ => [0.0; Fit::COUNT],
    };
    for (utility, more) in taste.iter_mut().zip(body) {
        *utility += more;
    }
    // In large sizes a slim cut is kept only by those who ask for it.
    if profile.is_large() && profile.fit != Some(Fit::Slim) {
        taste[Fit::Slim.index()] -= 0.6;
    }
    taste
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::lexicon::{Occasion, Words};

    fn styles(of: &[Style]) -> Words<Style> {
        let mut words = Words::default();
        for style in of {
            words.insert_index(style.index());
        }
        words
    }

    #[test]
    fn two_preferences_together_mean_more_than_each_alone() {
        let preppy = |of: &[Style]| {
            let profile = Profile { styles: styles(of), ..Profile::default() };
            style_taste(Context { profile: &profile, occasion: Some(Occasion::Everyday) })
                [Style::Preppy.index()]
        };
        let both = preppy(&[Style::Classic, Style::Sporty]);
        assert!(both > preppy(&[Style::Classic]) + 0.5 && both > preppy(&[Style::Sporty]) + 0.5);
    }

    #[test]
    fn the_wanted_cut_wins_and_the_opposite_loses() {
        let profile = Profile { fit: Some(Fit::Slim), ..Profile::default() };
        let taste = fit_taste(&profile, true);
        assert!(taste[0] > taste[1] && taste[1] > taste[2] && taste[2] > taste[3]);
    }
}
