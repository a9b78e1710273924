//! The people who sign in.

use atelier_core::domain::{Role, Timestamp};
use serde_json::json;
use sqlx::{AnyConnection, FromRow, Row, any::AnyRow};

use super::{
    sessions::{self, Proof},
    sign_in_links,
};
use crate::platform::db::{
    Conflict, Entry, Name, PersonId, Store, StoreError, TokenHash, record::Record, values,
};

crate::platform::db::part! {
    People, people
}

/// A person with an account. The password's hash is not part of it, so that nothing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub id: PersonId,
    pub name: Name,
    pub role: Role,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    /// When they last signed in; None of somebody who is only invited.
    pub signed_in_at: Option<Timestamp>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select id, name, role, created_at, signed_in_at, disabled_at, password_hash from people ",
            $rest
        )
    };
}

impl People<'_> {
    /// Stores the person, and their sign-in link if one is given, in one transaction, so that a request that finds the name taken
    /// also finds the link.
    pub async fn create(
        self,
        name: &Name,
        role: Role,
        link: Option<&TokenHash>,
        now: Timestamp,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.store.write().await?;
        let sql = "insert into people (name, name_key, role, created_at) values ($1, $2, $3, $4) returning *";
        let person: Person =
            sqlx::query_as_with(sql, values![name.as_str(), name.key(), role.as_str(), now.millis()])
                .fetch_one(&mut *transaction)
                .await?;
        let entry = Entry::new("person.create", name.as_str(), json!({"role": role.as_str()}));
        entry.write(&mut transaction, self.store.author, now).await?;
        if let Some(link) = link {
            sign_in_links::put(&mut transaction, link, &person, self.store.author, now).await?;
        }
        transaction.commit().await?;
        Ok(person)
    }

    pub async fn get(self, id: PersonId) -> Result<Option<Person>, StoreError> {
        self.store.find(select!("where id = $1"), values![id.0]).await
    }

    /// The person with that name and the hash of their password, in one statement: a name that exists
    /// takes no longer than one that does not.
    pub async fn find_with_password(
        self,
        name: &Name,
    ) -> Result<Option<(Person, Option<String>)>, StoreError> {
        let row = sqlx::query_with(select!("where name_key = $1"), values![name.key()])
            .fetch_optional(self.store.readers()?)
            .await?;
        Ok(row
            .map(|row| Ok::<_, sqlx::Error>((Person::from_row(&row)?, row.try_get("password_hash")?)))
            .transpose()?)
    }

    /// All people, including disabled ones, sorted by name.
    pub async fn list(self) -> Result<Vec<Person>, StoreError> {
        Ok(sqlx::query_as(select!("order by name_key")).fetch_all(self.store.readers()?).await?)
    }

    /// The first admin who can sign in, as long as none of them has a password.
    pub async fn admin_without_password(self) -> Result<Option<Person>, StoreError> {
        let sql = select!(
            "where role = 'admin' and disabled_at is null and not exists (
                select 1 from people where role = 'admin' and disabled_at is null and password_hash is not null
             ) order by name_key limit 1"
        );
        Ok(sqlx::query_as(sql).fetch_optional(self.store.readers()?).await?)
    }

    /// The hash of the person's password; None if they have no password yet.
    pub async fn password_hash(self, id: PersonId) -> Result<Option<String>, StoreError> {
        let row: Option<(Option<String>,)> =
            sqlx::query_as_with("select password_hash from people where id = $1", values![id.0])
                .fetch_optional(self.store.readers()?)
                .await?;
        row.map(|(hash,)| hash).ok_or(StoreError::NotFound("person"))
    }

    pub async fn set_role(self, id: PersonId, role: Role, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        if role != Role::Admin {
            keep_an_admin(&mut transaction, id).await?;
        }
        let person = lock(&mut transaction, id).await?;
        sqlx::query_with("update people set role = $2 where id = $1", values![id.0, role.as_str()])
            .execute(&mut *transaction)
            .await?;
        let details = json!({"before": person.role.as_str(), "after": role.as_str()});
        let entry = Entry::new("person.role", person.name.as_str(), details);
        self.store.commit(transaction, &entry, now).await
    }

    pub async fn rename(self, id: PersonId, name: &Name, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        let before = lock_invited(&mut transaction, id).await?.name;
        let sql = "update people set name = $2, name_key = $3 where id = $1";
        sqlx::query_with(sql, values![id.0, name.as_str(), name.key()]).execute(&mut *transaction).await?;
        let details = json!({"before": before.as_str(), "after": name.as_str()});
        let entry = Entry::new("person.rename", before.as_str(), details);
        self.store.commit(transaction, &entry, now).await
    }

    /// Deletes the account, with its sign-in link.
    pub async fn remove(self, id: PersonId, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        keep_an_admin(&mut transaction, id).await?;
        let person = lock_invited(&mut transaction, id).await?;
        sqlx::query("delete from people where id = $1").bind(id.0).execute(&mut *transaction).await?;
        let entry = Entry::new("person.remove", person.name.as_str(), json!({}));
        self.store.commit(transaction, &entry, now).await
    }

    /// Disables or enables the account. Either ends the person's sessions and cancels their
    /// sign-in link, so that none of before comes back.
    pub async fn set_disabled(self, id: PersonId, disabled: bool, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        if disabled {
            keep_an_admin(&mut transaction, id).await?;
        }
        let person = lock(&mut transaction, id).await?;
        let sql = "update people set disabled_at = $2 where id = $1";
        sqlx::query_with(sql, values![id.0, disabled.then_some(now.millis())])
            .execute(&mut *transaction)
            .await?;
        sessions::end_all(&mut transaction, id).await?;
        let action = if disabled { "person.disable" } else { "person.enable" };
        let entry = Entry::new(action, person.name.as_str(), json!({}));
        self.store.commit(transaction, &entry, now).await
    }
}

/// Whether the account is enabled, and still has the password that was proved. It stays so until the transaction ends:
/// on Postgres the update locks the row, and `SQLite` has only one writer.
pub(crate) async fn hold_enabled(
    connection: &mut AnyConnection,
    id: PersonId,
    proof: Proof<'_>,
) -> Result<bool, StoreError> {
    let (with_any_password, hash) = match proof {
        Proof::Password(hash) => (false, hash),
        Proof::Link(_) => (true, None),
    };
    let sql = "update people set role = role
         where id = $1 and disabled_at is null and ($2 or password_hash is not distinct from $3)";
    let held = sqlx::query_with(sql, values![id.0, with_any_password, hash]).execute(connection).await?;
    Ok(held.rows_affected() > 0)
}

/// Sets the password's hash, ends the person's sessions, which the old password may have begun, and cancels their link.
pub(crate) async fn set_password(
    connection: &mut AnyConnection,
    id: PersonId,
    hash: &str,
) -> Result<(), StoreError> {
    sqlx::query_with("update people set password_hash = $2 where id = $1", values![id.0, hash])
        .execute(&mut *connection)
        .await?;
    sessions::end_all(connection, id).await
}

pub(crate) async fn set_signed_in(
    connection: &mut AnyConnection,
    id: PersonId,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query_with("update people set signed_in_at = $2 where id = $1", values![id.0, now.millis()])
        .execute(connection)
        .await?;
    Ok(())
}

/// Refuses if the person is the last admin who can sign in: no page could undo the change.
async fn keep_an_admin(connection: &mut AnyConnection, id: PersonId) -> Result<(), StoreError> {
    // Two admins who demote each other at once must not both find the other one still an admin. On Postgres each such
    // transaction waits for the lock of the first row, and then reads the result of the one before. If that one deleted
    // the row, there is another first. SQLite has only one writer.
    let lock = "update people set role = role where id = (select min(id) from people)";
    while sqlx::query(lock).execute(&mut *connection).await?.rows_affected() == 0 {
        find(connection, id).await?;
    }
    let admins: Vec<i64> =
        sqlx::query_scalar("select id from people where role = 'admin' and disabled_at is null")
            .fetch_all(connection)
            .await?;
    if admins == [id.0] { Err(StoreError::Conflict(Conflict::LastAdmin)) } else { Ok(()) }
}

pub(crate) async fn find(connection: &mut AnyConnection, id: PersonId) -> Result<Person, StoreError> {
    let found = sqlx::query_as(select!("where id = $1")).bind(id.0).fetch_optional(connection).await?;
    found.ok_or(StoreError::NotFound("person"))
}

/// Like [`find`], and keeps other transactions from changing them before this one ends.
async fn lock(connection: &mut AnyConnection, id: PersonId) -> Result<Person, StoreError> {
    sqlx::query("update people set role = role where id = $1").bind(id.0).execute(&mut *connection).await?;
    find(connection, id).await
}

/// Like [`lock`], of somebody who never signed in.
async fn lock_invited(connection: &mut AnyConnection, id: PersonId) -> Result<Person, StoreError> {
    let person = lock(connection, id).await?;
    match person.signed_in_at {
        None => Ok(person),
        Some(_) => Err(StoreError::Conflict(Conflict::SignedIn)),
    }
}

impl FromRow<'_, AnyRow> for Person {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let id = row.try_get("id")?;
        let row = Record::new(row, "people", &id);
        Ok(Self {
            id: PersonId(id),
            name: row.parse("name", |name: &str| Name::new(name))?,
            role: row.parse("role", str::parse)?,
            created_at: row.time("created_at")?,
            disabled_at: row.optional_time("disabled_at")?,
            signed_in_at: row.optional_time("signed_in_at")?,
        })
    }
}
