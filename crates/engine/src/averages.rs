//! Averages of a type's articles, for attributes that a new article lacks.
//!
//! A model sums what an article's values are worth, and learned these from articles that have values. To leave out a missing or
//! unknown value is not neutral: such articles would be suggested first.

use std::{collections::BTreeMap, sync::Arc};

use atelier_core::domain::ArticleEncoder;
use rayon::prelude::*;

/// The values of an attribute, each with how many an article has of it on average.
#[derive(Debug, Clone, PartialEq)]
pub struct Average {
    /// Tells the averages of a release apart.
    pub number: u32,
    pub shares: Box<[(u32, f32)]>,
}

/// The averages by type, and over all articles for articles of an unknown type.
#[derive(Debug, Default)]
pub struct Averages {
    names: Vec<String>,
    /// By value: its attribute, as an index of `names`.
    attribute_of: Vec<usize>,
    /// By the type's value, then by attribute: none if most articles of the type say nothing of it.
    of_type: BTreeMap<u32, Vec<Option<Arc<Average>>>>,
    of_all: Vec<Option<Arc<Average>>>,
}

const TYPE: &str = "type";

impl Averages {
    /// `articles` has the values of each article that the release knows.
    pub fn count<'a>(encoder: &ArticleEncoder, articles: impl Iterator<Item = &'a [u32]>) -> Self {
        let (mut names, mut attribute_of) = (Vec::new(), Vec::with_capacity(encoder.count()));
        for (position, (name, values)) in encoder.attributes().enumerate() {
            names.push(name.to_owned());
            attribute_of.extend(std::iter::repeat_n(position, values));
        }
        let mut averages = Self { names, attribute_of, ..Self::default() };
        let mut by_type: BTreeMap<Option<u32>, Vec<&[u32]>> = BTreeMap::new();
        let mut all = Vec::new();
        for values in articles {
            by_type.entry(averages.kind(values)).or_default().push(values);
            all.push(values);
        }
        averages.of_all = averages.average(&all);
        let of_type: Vec<(Option<u32>, Vec<&[u32]>)> = by_type.into_iter().collect();
        let of_type =
            of_type.par_iter().filter_map(|(kind, articles)| Some(((*kind)?, averages.average(articles))));
        let mut of_type: BTreeMap<u32, Vec<Option<Arc<Average>>>> = of_type.collect();
        let all = of_type.values_mut().chain([&mut averages.of_all]).flatten().flatten();
        for (average, number) in all.zip(0..) {
            Arc::get_mut(average).expect("it was just made").number = number;
        }
        averages.of_type = of_type;
        averages
    }

    /// An average for each attribute that an article with these values lacks.
    pub fn averages_for(&self, values: &[u32]) -> Box<[Arc<Average>]> {
        self.lacking(values).map(|(_, average)| Arc::clone(average)).collect()
    }

    /// The attributes that an article with these values lacks, although most articles of its type have a value that the
    /// release knows.
    pub fn attributes_lacking(&self, values: &[u32]) -> impl Iterator<Item = &str> {
        self.lacking(values).map(|(attribute, _)| self.names[attribute].as_str())
    }

    fn lacking(&self, values: &[u32]) -> impl Iterator<Item = (usize, &Arc<Average>)> {
        let named = self.name_attributes(values);
        let of_type = self.kind(values).and_then(|kind| self.of_type.get(&kind));
        let averages = of_type.unwrap_or(&self.of_all).iter().enumerate();
        averages.filter_map(move |(position, average)| {
            average.as_ref().filter(|_| !named[position]).map(|average| (position, average))
        })
    }

    /// An article's values, and those that it had in training of attributes of which it says nothing now.
    pub fn with_trained(&self, values: &[u32], trained: &[u32]) -> Vec<u32> {
        let named = self.name_attributes(values);
        let kept = trained.iter().copied().filter(|&value| !named[self.attribute_of[value as usize]]);
        let mut all: Vec<u32> = values.iter().copied().chain(kept).collect();
        all.sort_unstable();
        all
    }

    /// By attribute, whether one of the values is of it.
    fn name_attributes(&self, values: &[u32]) -> Vec<bool> {
        let mut named = vec![false; self.names.len()];
        for &value in values {
            named[self.attribute_of[value as usize]] = true;
        }
        named
    }

    /// The type's value.
    fn kind(&self, values: &[u32]) -> Option<u32> {
        let is_type = |value: &u32| self.names[self.attribute_of[*value as usize]] == TYPE;
        values.iter().copied().find(is_type)
    }

    /// By attribute; none where fewer than half of the articles say something.
    #[expect(clippy::cast_precision_loss, reason = "articles are counted in millions")]
    fn average(&self, articles: &[&[u32]]) -> Vec<Option<Arc<Average>>> {
        let mut counts = vec![0_u32; self.attribute_of.len()];
        let mut with_value = vec![0_usize; self.names.len()];
        for values in articles {
            for &value in *values {
                counts[value as usize] += 1;
            }
            let named = self.name_attributes(values);
            with_value.iter_mut().zip(named).for_each(|(count, is_named)| *count += usize::from(is_named));
        }
        let mut averages = vec![Vec::new(); self.names.len()];
        for (value, &count) in (0..).zip(&counts).filter(|(_, count)| **count > 0) {
            let attribute = self.attribute_of[value as usize];
            averages[attribute].push((value, count as f32 / with_value[attribute] as f32));
        }
        let average = |(shares, with_value): (Vec<(u32, f32)>, usize)| {
            let is_common = 2 * with_value >= articles.len().max(1);
            is_common.then(|| Arc::new(Average { number: 0, shares: shares.into() }))
        };
        averages.into_iter().zip(with_value).map(average).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values 0 and 1 are colours, 2 is a line, 3 and 4 types: coat and hat.
    fn averages() -> Averages {
        let words = |name: &str, words: &[&str]| {
            (name.to_owned(), words.iter().copied().map(str::to_owned).collect::<Vec<_>>())
        };
        let values =
            [words("colour", &["blue", "red"]), words("line", &["a"]), words("type", &["coat", "hat"])];
        let encoder = ArticleEncoder::new(values.into_iter().collect(), BTreeMap::new());
        let articles: [&[u32]; 5] = [&[0, 3], &[0, 1, 3], &[1, 2, 3], &[2, 4], &[2, 4]];
        Averages::count(&encoder, articles.into_iter())
    }

    #[test]
    fn an_article_counts_as_an_average_one_where_it_says_nothing() {
        let all = averages();
        let averages = |values: &[u32]| -> Vec<Vec<(u32, f32)>> {
            all.averages_for(values).iter().map(|average| average.shares.to_vec()).collect()
        };
        let third = 2.0 / 3.0;
        assert_eq!(averages(&[3]), [vec![(0, third), (1, third)]], "only one coat of three has a line");
        assert_eq!(averages(&[1, 3]), Vec::<Vec<(u32, f32)>>::new());
        assert_eq!(averages(&[4]), [vec![(2, 1.0)]], "no hat has a colour");
        // Of an unknown type: as all articles.
        assert_eq!(averages(&[]), [vec![(0, third), (1, third)], vec![(2, 1.0)], vec![(3, 0.6), (4, 0.4)]]);
        assert_eq!(all.attributes_lacking(&[3]).collect::<Vec<_>>(), ["colour"]);
    }

    #[test]
    fn an_article_of_the_training_is_still_what_it_no_longer_says() {
        let all = averages();
        assert_eq!(all.with_trained(&[3], &[0, 2, 3]), [0, 2, 3]);
        assert_eq!(all.with_trained(&[1, 3], &[0, 3]), [1, 3], "its colour changed");
    }
}
