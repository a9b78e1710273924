//! The shop's rules, looks, experiments and stored feeds, each as JSON whose meaning the service knows.

use std::{borrow::Borrow, marker::PhantomData, str::FromStr};

use atelier_core::domain::{ExperimentName, IdError, LookName, RuleName, Timestamp};
use serde_json::{Value, json};
use sqlx::{Any, AnyConnection, AssertSqlSafe, FromRow, Row, Transaction, any::AnyRow};

use super::{
    ChangeError, Counts, Entry, Expected, Put, Store, StoreError, Stored, Version, connect::Dialect, json,
    memory::Held, record::Record, revisions, settings, values,
};

/// The key of the advisory lock of [`in_turn`]: "expe" in ASCII.
const TURN: i64 = 0x6578_7065;

/// The name of a document, which says what kind of document it is.
pub trait DocumentName: FromStr<Err = IdError> + Borrow<str> + Clone + Send + Sync + Unpin + 'static {
    /// Begins the actions of entries in the audit log.
    const KIND: &'static str;
    const TABLE: &'static str;
    /// For errors.
    const WHAT: &'static str;
    /// The most documents: each replica holds all.
    const MOST: usize;
    /// The count of changes: replicas read the documents again when it has changed.
    const REVISION: &'static str = revisions::SETTINGS;
    /// Whether a change depends on the other documents, so that one changes at a time.
    const TAKES_TURNS: bool = false;

    /// Part of a document with secrets that the audit log and callers may see. None if no document of the kind has any.
    fn without_secrets(_body: &Value) -> Option<Value> {
        None
    }

    /// The document as anyone may see it.
    fn shown(body: Value) -> Value {
        Self::without_secrets(&body).unwrap_or(body)
    }
}

impl DocumentName for RuleName {
    const KIND: &'static str = "rule";
    const TABLE: &'static str = "rules";
    const WHAT: &'static str = "the rule";
    const MOST: usize = 1000;
    const TAKES_TURNS: bool = true;
}

impl DocumentName for LookName {
    const KIND: &'static str = "look";
    const TABLE: &'static str = "looks";
    const WHAT: &'static str = "the look";
    const MOST: usize = 10_000;
    const REVISION: &'static str = revisions::LOOKS;
}

impl DocumentName for ExperimentName {
    const KIND: &'static str = "experiment";
    const TABLE: &'static str = "experiments";
    const WHAT: &'static str = "the experiment";
    const MOST: usize = 1000;
    const TAKES_TURNS: bool = true;
}

/// A document to store, and what else changes with it.
#[derive(Debug)]
pub struct NewDocument {
    pub body: Value,
    pub consequences: Vec<Consequence>,
}

/// Another change, in the document's transaction.
#[derive(Debug)]
pub enum Consequence {
    /// A setting, with the entry's action, subject and details.
    Set { setting: &'static str, value: String, action: &'static str, subject: String, details: Value },
    /// A rule ends, if it is active.
    End(RuleName),
}

#[derive(Debug)]
pub struct Documents<'a, Name> {
    store: &'a Store,
    names: PhantomData<Name>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Named<Name> {
    pub name: Name,
    pub body: Value,
    revision: i64,
}

impl Store {
    pub fn rules(&self) -> Documents<'_, RuleName> {
        self.documents()
    }

    pub fn looks(&self) -> Documents<'_, LookName> {
        self.documents()
    }

    pub fn experiments(&self) -> Documents<'_, ExperimentName> {
        self.documents()
    }

    pub fn documents<Name: DocumentName>(&self) -> Documents<'_, Name> {
        Documents { store: self, names: PhantomData }
    }
}

impl<Name: DocumentName> Documents<'_, Name> {
    /// All of them, by name.
    pub async fn list(self) -> Result<Vec<Stored<Named<Name>>>, StoreError> {
        list(&mut *self.store.readers()?.acquire().await?).await
    }

    pub async fn get(self, name: &Name) -> Result<Option<Stored<Named<Name>>>, StoreError> {
        find(&mut *self.store.readers()?.acquire().await?, name, "").await
    }

    pub async fn revision(self) -> Result<i64, StoreError> {
        revisions::read(self.store, Name::REVISION).await
    }

    /// Stores what `make` makes of the document as it is, or only checks whether it could be stored. The same document again is no
    /// change. `make` also gets the other documents if changes depend on them.
    pub async fn change<E>(
        self,
        name: &Name,
        expected: &Expected,
        is_trial: bool,
        now: Timestamp,
        make: impl FnOnce(Option<Value>, Vec<Named<Name>>) -> Result<NewDocument, E> + Send,
    ) -> Result<Result<(Put, Version), E>, ChangeError> {
        let mut transaction = self.store.write().await?;
        let mut others = Vec::new();
        if Name::TAKES_TURNS {
            others = in_turn(self.store, &mut transaction).await?;
            others.retain(|other: &Named<Name>| Borrow::<str>::borrow(&other.name) != name.borrow());
        }
        let stored = find(&mut transaction, name, self.store.dialect.for_update()).await?;
        expected.check(stored.as_ref().map(|stored| &stored.version))?;
        let before = stored.as_ref().map(|stored| stored.value.body.clone());
        let NewDocument { body, consequences } = match make(before.clone(), others) {
            Ok(new) => new,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(stored) = stored.filter(|stored| stored.value.body == body) {
            return Ok(Ok((Put::Unchanged, stored.version)));
        }
        let memory = Held::Documents(Name::TABLE).read(&mut transaction).await?;
        let (put, version) = self.write(&mut transaction, name, &body, now).await?;
        expected.check_put(put, before.is_some())?;
        if !is_trial {
            for consequence in consequences {
                consequence.write(self.store, &mut transaction, now).await?;
            }
            let details = json!({"before": before.map(Name::shown), "after": Name::shown(body)});
            self.commit(transaction, "put", name.borrow(), details, memory, now).await?;
        }
        Ok(Ok((put, version)))
    }

    /// Adds or replaces documents, all or none, or only checks whether they could be. `file` is where they come from, for the audit
    /// log.
    pub async fn import(
        self,
        documents: &[(Name, Value)],
        file: &str,
        is_trial: bool,
        now: Timestamp,
    ) -> Result<Counts, StoreError> {
        let mut transaction = self.store.write().await?;
        let memory = Held::Documents(Name::TABLE).read(&mut transaction).await?;
        let mut counts = Counts::default();
        for (name, body) in documents {
            let stored = find(&mut transaction, name, self.store.dialect.for_update()).await?;
            if stored.is_some_and(|stored| stored.value.body == *body) {
                counts.unchanged += 1;
                continue;
            }
            match self.write(&mut transaction, name, body, now).await?.0 {
                Put::Added => counts.added += 1,
                Put::Changed | Put::Unchanged => counts.changed += 1,
            }
        }
        let Counts { added, changed, .. } = counts;
        if is_trial {
            Held::Documents(Name::TABLE).check(self.store, &mut transaction, memory).await?;
        } else if added + changed > 0 {
            let details = json!({"added": added, "changed": changed});
            self.commit(transaction, "import", file, details, memory, now).await?;
        }
        Ok(counts)
    }

    async fn write(
        &self,
        connection: &mut AnyConnection,
        name: &Name,
        body: &Value,
        now: Timestamp,
    ) -> Result<(Put, Version), StoreError> {
        let text = json::text(body);
        json::check_row(Name::WHAT, text.len(), self.store.row_bytes)?;
        let table = Name::TABLE;
        let sql = format!(
            "insert into {table} (name, body, created_at) values ($1, $2, $3)
             on conflict (name) do update set body = excluded.body, revision = {table}.revision + 1 returning *"
        );
        let row: Stored<Named<Name>> =
            sqlx::query_as_with(AssertSqlSafe(sql), values![name.borrow(), text, now.millis()])
                .fetch_one(&mut *connection)
                .await?;
        if row.value.revision > 1 {
            return Ok((Put::Changed, row.version));
        }
        let sql = format!("select count(*) from {table}");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await?;
        if usize::try_from(count).is_ok_and(|count| count > Name::MOST) {
            let reason = format!("there are {} already; delete one first", Name::MOST);
            return Err(StoreError::Unfit { what: Name::WHAT, reason });
        }
        Ok((Put::Added, row.version))
    }

    /// Deletes a document, unless `check` says why it must stay. False if there is none.
    pub async fn delete<E>(
        self,
        name: &Name,
        expected: &Expected,
        now: Timestamp,
        check: impl FnOnce(&Value) -> Result<(), E> + Send,
    ) -> Result<Result<bool, E>, ChangeError> {
        let mut transaction = self.store.write().await?;
        let before = find(&mut transaction, name, self.store.dialect.for_update()).await?;
        if let Some(Err(error)) = before.as_ref().map(|before| check(&before.value.body)) {
            return Ok(Err(error));
        }
        expected.check(before.as_ref().map(|before| &before.version))?;
        let Some(before) = before else { return Ok(Ok(false)) };
        let sql = format!("delete from {} where name = $1", Name::TABLE);
        sqlx::query(AssertSqlSafe(sql)).bind(name.borrow()).execute(&mut *transaction).await?;
        let details = json!({"before": Name::shown(before.value.body)});
        self.commit(transaction, "delete", name.borrow(), details, i64::MAX, now).await?;
        Ok(Ok(true))
    }

    /// `memory` is what they took before.
    async fn commit(
        self,
        mut transaction: Transaction<'static, Any>,
        change: &str,
        subject: &str,
        details: Value,
        memory: i64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let action = format!("{}.{change}", Name::KIND);
        let entry = Entry::new(&action, subject, details);
        entry.write(&mut transaction, self.store.author, now).await?;
        revisions::increment(&mut transaction, Name::REVISION).await?;
        Held::Documents(Name::TABLE).check(self.store, &mut transaction, memory).await?;
        Ok(transaction.commit().await?)
    }
}

/// All documents, once no other change depends on them: until the transaction ends, they stay as they are.
pub(crate) async fn in_turn<Name: DocumentName>(
    store: &Store,
    transaction: &mut AnyConnection,
) -> Result<Vec<Named<Name>>, StoreError> {
    if store.dialect == Dialect::Postgres {
        sqlx::query("select pg_advisory_xact_lock($1)").bind(TURN).execute(&mut *transaction).await?;
    }
    Ok(list(transaction).await?.into_iter().map(|stored| stored.value).collect())
}

async fn list<Name: DocumentName>(
    connection: &mut AnyConnection,
) -> Result<Vec<Stored<Named<Name>>>, StoreError> {
    let sql = format!("select * from {} order by name", Name::TABLE);
    Ok(sqlx::query_as(AssertSqlSafe(sql)).fetch_all(connection).await?)
}

impl Consequence {
    async fn write(
        self,
        store: &Store,
        connection: &mut AnyConnection,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        match self {
            Self::Set { setting, value, action, subject, details } => {
                settings::write(connection, setting, &value).await?;
                Entry::new(action, &subject, details).write(connection, store.author, now).await
            }
            Self::End(name) => {
                let Some(stored) = find(connection, &name, store.dialect.for_update()).await? else {
                    return Ok(());
                };
                let (before, mut body) = (stored.value.body.clone(), stored.value.body);
                if body["state"] == "active" {
                    body["state"] = "off".into();
                    store.rules().write(connection, &name, &body, now).await?;
                    let details = json!({"before": before, "after": body});
                    Entry::new("rule.put", name.as_str(), details)
                        .write(connection, store.author, now)
                        .await?;
                }
                Ok(())
            }
        }
    }
}

async fn find<Name: DocumentName>(
    connection: &mut AnyConnection,
    name: &Name,
    lock: &str,
) -> Result<Option<Stored<Named<Name>>>, StoreError> {
    let sql = format!("select * from {} where name = $1{lock}", Name::TABLE);
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(name.borrow()).fetch_optional(connection).await?)
}

impl<Name: DocumentName> FromRow<'_, AnyRow> for Stored<Named<Name>> {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let name: String = row.try_get("name")?;
        let (created_at, revision) = (row.try_get("created_at")?, row.try_get("revision")?);
        let record = Record::new(row, Name::TABLE, &name);
        let body: String = record.get("body")?;
        let value = record.parse("body", |body: String| json::parse(&body))?;
        // A version is sent to callers, so it follows from no secret.
        let told = if Name::without_secrets(&value).is_some() { "" } else { &body };
        let version = Version::new(created_at, revision, &[&name, told]);
        let value = Named { name: record.parse("name", Name::from_str)?, body: value, revision };
        Ok(Self { value, version })
    }
}
