//! A method's tables: the rows that its trunk reads for an article, and those that its last layer compares.
//!
//! An article's rows are sums: its own vectors, if the method was trained with it, and the vectors of its values. So new
//! articles have rows, too. The memory is kept with them: for each article of the vocabulary, the articles that were worn with
//! it.
//!
//! Must not know sessions. Knows only the values of an article.

mod context;

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use atelier_core::domain::Schema;
use half::f16;
use pulp::Arch;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

pub use self::context::{ContextEncoder, Rows};
use crate::{
    averages::Average,
    outfit_memory::{FEATURES, OutfitMemory},
};

/// The largest number that a weight may be. The square of a larger one, and so an outfit's or a layer's sum of them, is
/// soon above float32's largest, 3.4e38.
pub(crate) const LARGEST: f32 = 1e18;

/// An article's parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Composition {
    /// Its index in the vocabulary, if the release was trained with it.
    pub own: Option<u32>,
    /// Its values' numbers, ascending.
    pub values: Box<[u32]>,
    /// The averages of attributes for which it has no known value. Own vectors include them, so only articles without
    /// them have them here.
    pub averages: Box<[Arc<Average>]>,
    /// Its embedding as models take it. Own vectors include it, so only articles without them have it here.
    pub embedding: Box<[f32]>,
}

/// The lengths of an article's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// The trunk's blocks read it.
    pub read: usize,
    /// The last layer reads it besides the trunk's vector: the match.
    pub matched: usize,
    pub personas: usize,
}

impl Widths {
    /// A row of the trunk's input `rows`.
    pub fn row(self) -> usize {
        self.read + self.matched + self.personas
    }

    /// The trunk's output `hidden`.
    pub fn hidden(self) -> usize {
        self.read + self.matched
    }
}

/// Why a file is not a method's tables.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{path} is not a file of tensors: {source}", path = .path.display())]
    Format { path: PathBuf, source: safetensors::SafeTensorError },
    #[error("{path}: the tensor {name} is {found}, expected {expected}; export the model again", path = .path.display())]
    Tensor { path: PathBuf, name: String, found: String, expected: String },
}

/// A method's tables.
#[derive(Debug)]
pub struct Tables {
    widths: Widths,
    articles: Sums,
    vocabulary: Sums,
    bias: Sums,
    personas: Option<Sums>,
    memory: Option<Memory>,
    context: Option<ContextEncoder>,
}

/// A table whose rows are sums. Own vectors may be narrower than those of values: they are a part of the first columns.
#[derive(Debug)]
struct Sums {
    own: Matrix,
    values: Option<Matrix>,
    /// Added to the first columns by each number of an embedding.
    embedding: Option<Matrix>,
    /// By the average's number, the sum of its values, once an article needed it.
    averages: RwLock<HashMap<u32, Arc<[f32]>>>,
}

/// Numbers as they are stored: tables are large, and single rows are needed of them.
#[derive(Debug)]
pub struct Matrix {
    columns: usize,
    numbers: Numbers,
}

#[derive(Debug)]
enum Numbers {
    Half(Vec<f16>),
    Single(Vec<f32>),
    /// Multiples of their row's scale.
    Scaled {
        steps: Vec<i8>,
        scales: Vec<f32>,
    },
}

/// For each article of the vocabulary the articles that it boosts, and by how much.
#[derive(Debug)]
struct Memory {
    columns: usize,
    /// `columns` articles for each article of the vocabulary.
    articles: Vec<u32>,
    strengths: Matrix,
    /// By feature of the schema whose values are articles, for each value: its article, if a model knows it, and by how
    /// much that is boosted.
    named: BTreeMap<usize, Vec<Option<(u32, f32)>>>,
    /// With the weights of what it says.
    outfits: Option<(OutfitMemory, Vec<f32>)>,
}

impl Tables {
    /// Reads a file. `vocabulary` is the number of articles with own vectors, `values` that of the encoder's values, if the
    /// release has an encoder, and `components` that of the numbers that it makes of an embedding.
    pub fn open(
        path: &Path,
        vocabulary: usize,
        values: Option<usize>,
        components: usize,
        schema: &Schema,
    ) -> Result<Self, TablesError> {
        let bytes = fs::read(path).map_err(|source| TablesError::File { path: path.to_owned(), source })?;
        let tensors = SafeTensors::deserialize(&bytes)
            .map_err(|source| TablesError::Format { path: path.to_owned(), source })?;
        let file = File { path, tensors };
        let has_values = file.has("vocabulary.values");
        let values = values.filter(|_| has_values);
        if has_values && values.is_none() {
            return Err(file.wrong("vocabulary.values", "there", "none: the release has no article encoder"));
        }
        let sums = |name: &str| -> Result<Sums, TablesError> {
            let own = file.matrix(&format!("{name}.own"), vocabulary, None)?;
            let values =
                values.map(|count| file.matrix(&format!("{name}.values"), count, None)).transpose()?;
            if let Some(values) = &values
                && values.columns < own.columns
            {
                let found = format!("{} numbers wide", values.columns);
                return Err(file.wrong(
                    &format!("{name}.values"),
                    &found,
                    &format!("at least {}", own.columns),
                ));
            }
            let embedding_name = format!("{name}.embedding");
            let embedding = if values.is_some() && components > 0 && file.has(&embedding_name) {
                Some(file.matrix(&embedding_name, components, Some(own.columns))?)
            } else {
                None
            };
            Ok(Sums { own, values, embedding, averages: RwLock::default() })
        };
        let (articles, output) = rayon::join(|| sums("articles"), || sums("vocabulary"));
        let (articles, output, bias) = (articles?, output?, sums("bias")?);
        let personas = file.has("personas.own").then(|| sums("personas")).transpose()?;
        if articles.width() != output.width() || articles.own.columns != output.own.columns {
            let (found, expected) = (output.width(), articles.width());
            return Err(file.wrong(
                "vocabulary",
                &format!("{found} numbers wide"),
                &format!("{expected}, as articles"),
            ));
        }
        let widths = Widths {
            read: articles.own.columns,
            matched: articles.width() - articles.own.columns,
            personas: personas.as_ref().map_or(0, Sums::width),
        };
        let memory = Memory::read(&file, vocabulary, schema)?;
        let context = ContextEncoder::read(&file, schema)?;
        Ok(Self { widths, articles, vocabulary: output, bias, personas, memory, context })
    }

    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// Whether articles have rows that the method was not trained with.
    pub fn is_open(&self) -> bool {
        self.vocabulary.values.is_some()
    }

    /// Whether it has rows for this article.
    pub fn knows(&self, article: &Composition) -> bool {
        article.own.is_some() || self.is_open()
    }

    /// Writes an article's row of the trunk's input.
    pub fn write_row(&self, article: &Composition, row: &mut [f32]) {
        self.write(&self.articles, article, row);
    }

    /// Writes an article's weights in the last layer, those of the personas at their end, and returns its bias.
    pub fn write_weights(&self, article: &Composition, weights: &mut [f32]) -> f32 {
        self.write(&self.vocabulary, article, weights);
        let mut bias = [0.0];
        self.bias.add(article, &mut bias);
        bias[0]
    }

    /// The personas' part comes last.
    fn write(&self, sums: &Sums, article: &Composition, to: &mut [f32]) {
        to.fill(0.0);
        let (hidden, of_personas) = to.split_at_mut(self.widths.hidden());
        sums.add(article, hidden);
        if let Some(personas) = &self.personas {
            personas.add(article, of_personas);
        }
    }

    /// Encoder of the trunk's input `context`; None if the trunk reads features, or none.
    pub fn context(&self) -> Option<&ContextEncoder> {
        self.context.as_ref()
    }

    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// The articles of the vocabulary that an article of the outfit boosts, each with by how much.
    pub fn boosts_of_article(&self, article: u32) -> impl Iterator<Item = (u32, f32)> {
        self.memory.iter().flat_map(move |memory| {
            let (row, mut strengths) = (article as usize, vec![0.0; memory.columns]);
            memory.strengths.add_scaled(row, 1.0, &mut strengths);
            let articles = &memory.articles[row * memory.columns..][..memory.columns];
            let boosts = articles.iter().copied().zip(strengths);
            boosts.filter(|(_, strength)| *strength != 0.0)
        })
    }

    pub fn outfits(&self) -> Option<&OutfitMemory> {
        self.memory.as_ref()?.outfits.as_ref().map(|(outfits, _)| outfits)
    }

    /// The same for what remembered outfits name with the visible articles, if it is wanted.
    pub fn boosts_of_outfits(
        &self,
        visible: &[u32],
        is_wanted: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = (u32, f32)> {
        let outfits = self.memory.as_ref().and_then(|memory| memory.outfits.as_ref());
        outfits.into_iter().flat_map(move |(outfits, weights)| {
            let weigh = move |(article, features): (u32, [f32; FEATURES])| {
                (article, features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum())
            };
            outfits.describe(visible, None, &is_wanted).into_iter().map(weigh)
        })
    }

    /// The same for what the customer's features name. `context` has each feature's values.
    pub fn boosts_of_context(&self, context: &[Vec<u32>]) -> impl Iterator<Item = (u32, f32)> {
        let named = self.memory.iter().flat_map(|memory| &memory.named);
        named.flat_map(|(feature, articles)| {
            context[*feature].iter().filter_map(|value| *articles.get(*value as usize)?)
        })
    }

    /// The most articles that an article boosts; None without a memory.
    pub fn memory_columns(&self) -> Option<usize> {
        self.memory.as_ref().map(|memory| memory.columns)
    }

    /// By feature of the schema whose values are articles, for each value its article and by how much that is boosted.
    pub fn named_articles(&self) -> impl Iterator<Item = (usize, &[Option<(u32, f32)>])> {
        self.memory
            .iter()
            .flat_map(|memory| memory.named.iter().map(|(feature, rows)| (*feature, rows.as_slice())))
    }
}

impl Matrix {
    /// Its numbers, row by row.
    pub fn to_singles(&self) -> Vec<f32> {
        let mut singles = vec![0.0; self.rows() * self.columns];
        for (row, to) in singles.chunks_exact_mut(self.columns).enumerate() {
            self.add_scaled(row, 1.0, to);
        }
        singles
    }

    fn into_singles(self) -> Self {
        Self { columns: self.columns, numbers: Numbers::Single(self.to_singles()) }
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn rows(&self) -> usize {
        let numbers = match &self.numbers {
            Numbers::Half(numbers) => numbers.len(),
            Numbers::Single(numbers) => numbers.len(),
            Numbers::Scaled { steps, .. } => steps.len(),
        };
        numbers / self.columns
    }

    fn add_scaled(&self, row: usize, by: f32, to: &mut [f32]) {
        let positions = row * self.columns..(row + 1) * self.columns;
        match &self.numbers {
            Numbers::Half(numbers) => {
                to.iter_mut().zip(&numbers[positions]).for_each(|(to, from)| *to += by * from.to_f32());
            }
            Numbers::Single(numbers) => {
                to.iter_mut().zip(&numbers[positions]).for_each(|(to, from)| *to += by * from);
            }
            Numbers::Scaled { steps, scales } => {
                let (by, steps) = (by * scales[row], &steps[positions]);
                // All instructions of the machine, because a row of the trunk's input is a sum of many of these.
                Arch::new().dispatch(|| {
                    to.iter_mut().zip(steps).for_each(|(to, from)| *to += by * f32::from(*from));
                });
            }
        }
    }

    fn number(&self, row: usize, column: usize) -> f32 {
        let position = row * self.columns + column;
        match &self.numbers {
            Numbers::Half(numbers) => numbers[position].to_f32(),
            Numbers::Single(numbers) => numbers[position],
            Numbers::Scaled { steps, scales } => scales[row] * f32::from(steps[position]),
        }
    }

    /// None may be so large that a sum of a few is not finite.
    fn is_sound(&self) -> bool {
        let is_sound = |number: f32| number.abs() <= LARGEST;
        match &self.numbers {
            Numbers::Half(numbers) => numbers.iter().all(|number| number.is_finite()),
            Numbers::Single(numbers) => numbers.iter().all(|number| is_sound(*number)),
            Numbers::Scaled { scales, .. } => scales.iter().all(|scale| is_sound(f32::from(i8::MIN) * scale)),
        }
    }
}

impl Sums {
    fn width(&self) -> usize {
        self.values.as_ref().unwrap_or(&self.own).columns
    }

    fn add(&self, article: &Composition, to: &mut [f32]) {
        if let Some(own) = article.own {
            self.own.add_scaled(own as usize, 1.0, to);
        }
        if let Some(embedding) = &self.embedding {
            for (component, &number) in article.embedding.iter().enumerate() {
                embedding.add_scaled(component, number, to);
            }
        }
        let Some(values) = &self.values else { return };
        for &value in &article.values {
            values.add_scaled(value as usize, 1.0, to);
        }
        for average in &article.averages {
            to.iter_mut().zip(&*self.average(average, values)).for_each(|(to, from)| *to += from);
        }
    }

    /// The sum of an average's values. A type may have thousands of values, and many articles may lack the same attribute.
    fn average(&self, average: &Average, values: &Matrix) -> Arc<[f32]> {
        let known =
            self.averages.read().unwrap_or_else(PoisonError::into_inner).get(&average.number).cloned();
        known.unwrap_or_else(|| {
            let mut sum = vec![0.0; values.columns];
            for &(value, share) in &average.shares {
                values.add_scaled(value as usize, share, &mut sum);
            }
            let sum: Arc<[f32]> = sum.into();
            let mut all = self.averages.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(average.number).or_insert(sum))
        })
    }
}

impl Memory {
    fn read(file: &File<'_>, vocabulary: usize, schema: &Schema) -> Result<Option<Self>, TablesError> {
        if !file.has("memory.articles") {
            return Ok(None);
        }
        let (columns, articles) = file.articles("memory.articles", vocabulary, vocabulary)?;
        let strengths = file.matrix("memory.strengths", vocabulary, Some(columns))?;
        let mut named = BTreeMap::new();
        for (position, feature) in schema.features().iter().enumerate() {
            let name = format!("memory.{}.articles", feature.name);
            if !file.has(&name) {
                continue;
            }
            let (_, of_values) = file.articles(&name, feature.rows(), vocabulary)?;
            let strengths =
                file.matrix(&format!("memory.{}.strengths", feature.name), feature.rows(), Some(1))?;
            if of_values.len() != feature.rows() {
                let found = format!("{} articles", of_values.len());
                return Err(file.wrong(&name, &found, &format!("{}, one for each value", feature.rows())));
            }
            let row = |(value, &article): (usize, &u32)| {
                let strength = strengths.number(value, 0);
                (strength != 0.0).then_some((article, strength))
            };
            named.insert(position, of_values.iter().enumerate().map(row).collect());
        }
        let outfits = file.has("memory.outfits").then(|| Self::read_outfits(file, vocabulary)).transpose()?;
        Ok(Some(Self { columns, articles, strengths, named, outfits }))
    }

    /// The vocabulary's length ends an outfit.
    fn read_outfits(file: &File<'_>, vocabulary: usize) -> Result<(OutfitMemory, Vec<f32>), TablesError> {
        let numbers = file.tensor("memory.outfits")?.shape().first().copied().unwrap_or_default();
        let (_, numbers) = file.articles("memory.outfits", numbers, vocabulary + 1)?;
        let outfits = numbers.split(|&article| article as usize == vocabulary);
        let has_one_twice = |outfit: &[u32]| {
            outfit.iter().enumerate().any(|(place, article)| outfit[..place].contains(article))
        };
        if outfits.clone().any(has_one_twice) {
            let found = "of an outfit that has an article twice";
            return Err(file.wrong("memory.outfits", found, "outfits of different articles"));
        }
        let weights = file.matrix("memory.outfits.weights", FEATURES, Some(1))?.to_singles();
        Ok((OutfitMemory::new(vocabulary, outfits.filter(|outfit| !outfit.is_empty())), weights))
    }
}

/// An open file of tensors.
struct File<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
}

impl File<'_> {
    fn has(&self, name: &str) -> bool {
        self.tensors.names().contains(&name)
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, TablesError> {
        self.tensors.tensor(name).map_err(|_| self.wrong(name, "missing", "there"))
    }

    fn wrong(&self, name: &str, found: &str, expected: &str) -> TablesError {
        let (path, name) = (self.path.to_owned(), name.to_owned());
        TablesError::Tensor { path, name, found: found.to_owned(), expected: expected.to_owned() }
    }

    /// A matrix of finite numbers, or a list as a matrix of one column.
    fn matrix(&self, name: &str, rows: usize, columns: Option<usize>) -> Result<Matrix, TablesError> {
        let tensor = self.tensor(name)?;
        let (found, width) = match *tensor.shape() {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => (0, 0),
        };
        if found != rows || columns.is_some_and(|columns| columns != width) || width == 0 {
            let columns = columns.map_or("any number".to_owned(), |columns| columns.to_string());
            let found = format!("of shape {:?}", tensor.shape());
            return Err(self.wrong(name, &found, &format!("{rows} rows and {columns} of columns")));
        }
        let numbers = match tensor.dtype() {
            Dtype::F16 => {
                let (halves, _) = tensor.data().as_chunks();
                Numbers::Half(halves.iter().map(|bytes| f16::from_le_bytes(*bytes)).collect())
            }
            Dtype::F32 => {
                let (singles, _) = tensor.data().as_chunks();
                Numbers::Single(singles.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
            }
            Dtype::I8 => {
                let steps = tensor.data().iter().map(|byte| byte.cast_signed()).collect();
                Numbers::Scaled { steps, scales: self.scales(&format!("{name}.scale"), rows)? }
            }
            other => return Err(self.wrong(name, &format!("{other:?}"), "F32, F16 or I8")),
        };
        let matrix = Matrix { columns: width, numbers };
        if matrix.is_sound() {
            Ok(matrix)
        } else {
            Err(self.wrong(name, "not finite or too large", "numbers below 1e18"))
        }
    }

    /// One scale for each row of a matrix of I8.
    fn scales(&self, name: &str, rows: usize) -> Result<Vec<f32>, TablesError> {
        let tensor = self.tensor(name)?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != [rows] {
            let found = format!("{:?} of shape {:?}", tensor.dtype(), tensor.shape());
            return Err(self.wrong(name, &found, &format!("F32 of shape [{rows}], a scale for each row")));
        }
        let (scales, _) = tensor.data().as_chunks();
        Ok(scales.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Articles of the vocabulary, and the number of columns.
    fn articles(&self, name: &str, rows: usize, vocabulary: usize) -> Result<(usize, Vec<u32>), TablesError> {
        let tensor = self.tensor(name)?;
        if tensor.dtype() != Dtype::I32 {
            return Err(self.wrong(name, &format!("{:?}", tensor.dtype()), "I32"));
        }
        let columns = match *tensor.shape() {
            [found] if found == rows => 1,
            [found, columns] if found == rows && columns > 0 => columns,
            _ => {
                let found = format!("of shape {:?}", tensor.shape());
                return Err(self.wrong(name, &found, &format!("{rows} rows and any number of columns")));
            }
        };
        let (numbers, _) = tensor.data().as_chunks();
        let article = |bytes: &[u8; 4]| {
            u32::try_from(i32::from_le_bytes(*bytes)).ok().filter(|article| (*article as usize) < vocabulary)
        };
        let articles: Option<Vec<u32>> = numbers.iter().map(article).collect();
        let outside =
            || self.wrong(name, "of numbers outside the vocabulary", &format!("numbers below {vocabulary}"));
        Ok((columns, articles.ok_or_else(outside)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_articles_has_rows_and_columns() {
        let read = |shape: &str, bytes: usize| {
            let head =
                format!("{{\"m\":{{\"dtype\":\"I32\",\"shape\":{shape},\"data_offsets\":[0,{bytes}]}}}}");
            let mut file = (head.len() as u64).to_le_bytes().to_vec();
            file.extend(head.bytes().chain(std::iter::repeat_n(0, bytes)));
            let tensors = SafeTensors::deserialize(&file).unwrap();
            let read = File { path: Path::new("t"), tensors }.articles("m", 3, 9);
            read.map(|(columns, articles)| (columns, articles.len())).map_err(|error| error.to_string())
        };
        assert_eq!((read("[3]", 12), read("[3,2]", 24)), (Ok((1, 3)), Ok((2, 6))));
        for (shape, bytes) in
            [("[3,2,0]", 0), ("[3,2,1]", 24), ("[3,0]", 0), ("[2]", 8), ("[]", 4), ("[0]", 0)]
        {
            let refused = read(shape, bytes).unwrap_err();
            assert!(refused.contains("3 rows and any number of columns"), "{shape}: {refused}");
        }
    }

    /// The logarithm of what outfits with an article twice say is not a number.
    #[test]
    fn remembered_outfits_have_different_articles() {
        let read = |articles: &[i32]| {
            let articles: Vec<u8> = articles.iter().flat_map(|article| article.to_le_bytes()).collect();
            let weights = vec![0; 4 * FEATURES];
            let outfits = TensorView::new(Dtype::I32, vec![articles.len() / 4], &articles).unwrap();
            let weights = TensorView::new(Dtype::F32, vec![FEATURES], &weights).unwrap();
            let tensors = [("memory.outfits", outfits), ("memory.outfits.weights", weights)];
            let bytes = safetensors::serialize(tensors, None).unwrap();
            let file = File { path: Path::new("t"), tensors: SafeTensors::deserialize(&bytes).unwrap() };
            let read = Memory::read_outfits(&file, 9).map_err(|error| error.to_string());
            read.map(|(outfits, _)| outfits.outfits().map(<[u32]>::to_vec).collect::<Vec<_>>())
        };
        assert_eq!(read(&[1, 2, 9, 2, 3, 9]), Ok(vec![vec![1, 2], vec![2, 3]]));
        assert!(read(&[1, 2, 9, 2, 3, 2, 9]).unwrap_err().contains("an article twice"));
    }
}
