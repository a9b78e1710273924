use crate::config::*;

fn read(named: &Path, overrides: Overrides) -> Result<Config, ConfigError> {
    Config::read(Some(named), overrides).map(|(config, _)| config)
}

fn variables(given: &[(&str, &str)]) -> Result<Overrides, ConfigError> {
    Overrides::from_variables(given.iter().map(|(name, value)| ((*name).into(), (*value).into())))
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

/// The settings of a file with this text and of these variables.
fn settings(text: &str, given: &[(&str, &str)]) -> Result<Config, ConfigError> {
    read(file(text).path(), variables(given)?)
}

#[test]
fn flag_over_variable_over_file_over_default() {
    let text = "[server]\naddress = \"127.0.0.1:1\"\n[models]\nrelease = \"spring\"\n";
    let from_file = settings(text, &[]).unwrap();
    assert_eq!((&*from_file.server.address, &*from_file.models.release), ("127.0.0.1:1", "spring"));
    assert_eq!(from_file.models.folder, Path::new("models"), "the default");

    let given =
        [("ATELIER__SERVER__ADDRESS", "127.0.0.1:2"), ("ATELIER__LIMITS__PAGE", "70"), ("HOME", "/x")];
    let mut overrides = variables(&given).unwrap();
    overrides.set("models", "release", "--release", "2026");
    overrides.set_pair("limits.page=80").unwrap();
    overrides.set_pair("database.url=postgres://h/d?application_name=a=b").unwrap();
    overrides.set("shop", "time_zone", "--time-zone", "Europe/Zurich");
    let from_all = read(file(text).path(), overrides).unwrap();
    assert_eq!((&*from_all.server.address, from_all.limits.page), ("127.0.0.1:2", 80));
    assert_eq!(from_all.models.release, "2026", "a string that looks like a number");
    assert_eq!(from_all.database.url.as_deref(), Some("postgres://h/d?application_name=a=b"));
    assert_eq!(from_all.shop.zone().name(), "Europe/Zurich");
}

#[test]
fn the_prefixed_variable_overrides_the_hosts() {
    let given = [("ATELIER__DATABASE__URL", "sqlite:a"), ("DATABASE_URL", "postgres://b")];
    assert_eq!(settings("", &given).unwrap().database.url.as_deref(), Some("sqlite:a"));
    let config = settings("", &given[1..]).unwrap();
    assert_eq!(config.database.url.as_deref(), Some("postgres://b"));
    assert!(!format!("{config:?}").contains("postgres"), "a URL may contain a password");
    let unset = [("ATELIER__SERVER__ADDRESS", ""), ("ATELIER__ACCESS__REQUIRE_KEY", "")];
    assert_eq!(settings("", &unset).unwrap(), Config::default(), "an empty variable is ignored");
    assert!(!settings("", &[("ATELIER__ACCESS__REQUIRE_KEY", "false")]).unwrap().access.require_key);
}

#[test]
fn an_error_names_the_origin_of_the_setting() {
    for (text, given, expected) in [
        (
            "[server]\nadres = 1",
            "",
            "server.adres (the configuration file /…, line 2): unknown field `adres`",
        ),
        ("# Ours.\n\n[servers]\nport = 1", "", "servers (the configuration file /…, line 3): "),
        ("[limits]\npage = -1", "", "limits.page (the configuration file /…invalid value: integer `-1`"),
        (
            "[engine]\nremote = \"t:8\"",
            "",
            "engine.remote (the configuration file /…HOST:PORT, found \"t:8\"",
        ),
        ("[database]\nurl = \"secret", "", "the configuration file /…, line 2, is not TOML: "),
        ("[database]\nurl = \"\"", "", "invalid settings: database.url is empty: …the configuration file /"),
        ("", "DATABASE_URL=", "invalid settings: database.url is empty: …DATABASE_URL"),
        ("", "ATELIER__DATABASE__URL=", "invalid settings: database.url is empty: …ATELIER__DATABASE__URL"),
        ("", "ATELIER__SERVER__ADRES=x", "server.adres (ATELIER__SERVER__ADRES): unknown field `adres`"),
        ("", "ATELIER__SERVER=x", "the variable ATELIER__SERVER names no setting"),
        ("", "ATELIER__ACCESS__REQUIRE_KEY=maybe", "access.require_key (…expected a boolean"),
        ("", "ATELIER__ACCESS__REQUIRE_KEY=1", "access.require_key (…expected a boolean"),
        ("", "ATELIER__ACCESS__REQUIRE_KEY=True", "access.require_key (…expected a boolean"),
    ] {
        let given: Vec<_> = given.split_once('=').into_iter().collect();
        let error = settings(text, &given).expect_err(expected).to_string();
        let (start, rest) = expected.split_once('…').unwrap_or((expected, ""));
        assert!(error.starts_with(start) && error.contains(rest), "{text} {given:?}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let error = read(Path::new("/nowhere.toml"), Overrides::default()).unwrap_err().to_string();
    assert!(error.starts_with("the configuration file /nowhere.toml: No such file"), "{error}");
    let mut overrides = Overrides::default();
    let error = overrides.set_pair("limits.page").unwrap_err().to_string();
    assert_eq!(error, "--set takes SECTION.KEY=VALUE, as in --set limits.page=100");
    overrides.set_pair("limits.pages=80").unwrap();
    let error = read(file("").path(), overrides).unwrap_err().to_string();
    assert!(error.starts_with("limits.pages (--set limits.pages): unknown field `pages`"), "{error}");
}

/// Sections with settings, and how the reason begins.
const REFUSED: &str = r#"
limits: body_bytes = 10 -> limits.body_bytes must be at least 1024, found 10 (
limits: bulk_bytes = 2000 -> limits.bulk_bytes (2000) must be at least limits.body_bytes (1048576) (
limits: row_bytes = 1000000 -> limits.row_bytes is 1024 to 131072, found 1000000 (
limits: page = 20 -> limits.page_default (50) must be at most limits.page (20) (
limits: feedback_events = 0 -> limits.feedback_events must be at least 1, found 0 (
limits: batch_suggestions = 9 -> limits.batch_suggestions (9) must be at least limits.batch_items (256): each item has
limits: columns = 1 -> limits.columns must be at least 2, found 1 (
limits: stream_ms = 2000 -> limits.stream_ms (2000) must be at least limits.transfer_ms (30000), which is for a part of
limits: idle_ms = 5000 -> limits.idle_ms (5000) must be at least limits.head_ms (10000): the first byte of a request
limits: deadline_ms = 25000 -> server.drain_ms (20000) must be at least limits.deadline_ms (25000): a stop would cancel
profiles: most_age_s = 0 -> profiles.most_age_s (0) must be at least as long as profiles.fresh_ms (1000) (
access: session_idle_s = 60 -> access.session_idle_s must be at least 300, found 60: the last use of a session is
access: session_s = 3600 -> access.session_s (3600) must be at least access.session_idle_s (43200) (
access: cross_origins = "https://a https://b/" -> access.cross_origins: expected an origin such as https://shop.example
shop: currency = "euro" -> shop.currency: a currency has three capital letters, such as EUR, found "euro" (
shop: locale = "tlh" -> shop.locale: a locale is one of en, en-US, de, de-CH, fr,
shop: time_zone = "CEST" -> shop.time_zone: expected a time zone such as Europe/Zurich or UTC, found "CEST"
tickets: days = 0 -> tickets.days must be from 1 to 3650, found 0 (
tickets: key_days = 4000 -> tickets.key_days must be from 1 to 3650, found 4000 (
server: certificate = "c.pem" -> server.certificate is set without server.key: TLS needs both (
server: key = "k.pem" -> server.key is set without server.certificate: TLS needs both (
engine: queue = 100 -> engine.queue (100) must be at least limits.batch_items (256): the queue would refuse a full batch
engine: remote = "http://t:80"; device = "cuda" -> engine.device sets the device of local models, and engine.remote uses
engine: batch = 2000 -> engine.batch (2000) must be at least 1, and engine.queue (1024) at least engine.batch (
"#;

#[test]
fn limits_that_contradict_each_other_are_refused() {
    assert!(settings("[limits]\nbody_bytes = 2048\nbulk_bytes = 2048", &[]).is_ok());
    assert!(settings("[shop]\npublic_attributes = [\"name\", \"stock\"]", &[]).is_err());
    for row in REFUSED.trim().lines() {
        let (text, reason) = row.split_once(" -> ").unwrap();
        let (section, text) = text.split_once(": ").unwrap();
        let text = format!("[{section}]\n{}", text.replace("; ", "\n"));
        let error = settings(&text, &[]).expect_err(row).to_string();
        assert!(error.starts_with(&format!("invalid settings: {reason}")), "{row}: {error}");
        assert!(error.contains(" is from the configuration file /"), "{row}: {error}");
    }
    // Settings from all origins are checked together.
    let text = "[limits]\ndeadline_ms = 25000\n[engine]\nqueue = 256";
    let config = settings(text, &[("ATELIER__SERVER__DRAIN_MS", "30000")]).unwrap();
    assert_eq!(config.server.drain(), Duration::from_secs(30));
    let text = "[limits]\nkey_rate = 5\npage_default = 40";
    let error = settings(text, &[("ATELIER__LIMITS__PAGE", "20")]).unwrap_err().to_string();
    let expected = "limits.page_default (40) must be at most limits.page (20) (limits.page is from ATELIER__LIMITS__PAGE, \
                    limits.page_default is from the configuration file /";
    assert!(error.contains(expected) && !error.contains("key_rate"), "{error}");
    assert!(error.ends_with(", line 3)"), "{error}");
}

#[test]
fn an_address_is_a_host_and_a_port() {
    let read = |address: &str| {
        settings("", &[("ATELIER__SERVER__ADDRESS", address)]).map(|config| config.server.address)
    };
    for good in ["127.0.0.1:8080", "localhost:0", "[::1]:80", "0.0.0.0:65535"] {
        assert_eq!(read(good).unwrap(), good);
    }
    for bad in "foo 8080 :8080 127.0.0.1 127.0.0.1:80x 127.0.0.1:65536 ::1 ::1:80 a:".split(' ') {
        let expected = format!("server.address: expected HOST:PORT, such as 127.0.0.1:8080, found {bad:?} (");
        let error = read(bad).unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid settings: {expected}")), "{error}");
    }
}

#[test]
fn the_commented_file_says_the_defaults() {
    let mut expected = Config::default();
    let text = include_str!("../../docs/atelier.toml");
    let config: Config = toml::from_str(text).unwrap();
    // A default depends on the user's home, so the file has it only in a comment.
    expected.cache = config.cache.clone();
    assert_eq!(config, expected);
    assert!(text.contains("# url = ") && text.contains("# folder = "));
}
