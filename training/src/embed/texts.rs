//! Texts as numbers of tokens, as `tokenizer.json` says.

use std::path::Path;

use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::Value;
use tokenizers::{Tokenizer, TruncationParams};

use super::encoder::read_optional;

/// The most tokens of a text where the encoder's files give none.
const MOST: usize = 512;

#[derive(Debug)]
pub(super) struct Texts {
    tokenizer: Tokenizer,
    most: usize,
    pad: i64,
}

/// Fields read of `tokenizer_config.json`, which need not be there.
#[derive(Debug, Default, Deserialize)]
struct Config {
    model_max_length: Option<f64>,
    pad_token: Option<Value>,
}

impl Texts {
    pub(super) fn open(file: &Path) -> Result<Self> {
        let wrong = |error| anyhow!("{}: {error}", file.display());
        let mut tokenizer = Tokenizer::from_file(file).map_err(wrong)?;
        let config: Config = read_optional(&file.with_file_name("tokenizer_config.json"))?;
        let given = config.model_max_length.filter(|most| (1.0..=4096.0).contains(most));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it was compared with 1 and 4096"
        )]
        let given = given.map(|most| most as usize);
        let most = tokenizer.get_truncation().map(|own| own.max_length).or(given).unwrap_or(MOST);
        let pad =
            config.pad_token.as_ref().and_then(|token| token.as_str().or_else(|| token["content"].as_str()));
        let pad = pad.and_then(|token| tokenizer.token_to_id(token));
        let pad = tokenizer.get_padding().map(|own| own.pad_id).or(pad).unwrap_or(0);
        let truncation = TruncationParams { max_length: most, ..TruncationParams::default() };
        tokenizer.with_padding(None).with_truncation(Some(truncation)).map_err(wrong)?;
        Ok(Self { tokenizer, most, pad: pad.into() })
    }

    pub(super) fn tokens(&self, text: &str) -> Result<Vec<i64>> {
        let encoding = self.tokenizer.encode(text, true).map_err(|error| anyhow!("{error}"))?;
        Ok(encoding.get_ids().iter().copied().map(i64::from).collect())
    }

    /// The most tokens of a text.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The token that fills texts up.
    pub(super) fn pad(&self) -> i64 {
        self.pad
    }
}
