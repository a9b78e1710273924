use crate::config::*;

fn read(named: Option<&Path>, overrides: Overrides) -> Result<Config, ConfigError> {
    Config::read(named, overrides).map(|(config, _)| config)
}

fn variables(given: &[(&str, &str)]) -> Result<Overrides, ConfigError> {
    Overrides::from_variables(given.iter().map(|(name, value)| ((*name).into(), (*value).into())))
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn flag_over_variable_over_file_over_default() {
    let named = file("[server]\naddress = \"127.0.0.1:1\"\n[models]\nrelease = \"spring\"\n");
    let read = |overrides| read(Some(named.path()), overrides).unwrap();
    let from_file = read(Overrides::default());
    assert_eq!(from_file.server.address, "127.0.0.1:1");
    assert_eq!(from_file.models.release, "spring");
    assert_eq!(from_file.models.folder, Path::new("models"), "the default");

    let mut overrides = variables(&[("ATELIER__SERVER__ADDRESS", "127.0.0.1:2"), ("HOME", "/x")]).unwrap();
    overrides.set("models", "release", "--release", "2026");
    let from_all = read(overrides);
    assert_eq!(from_all.server.address, "127.0.0.1:2");
    assert_eq!(from_all.models.release, "2026", "a string that looks like a number");
}

#[test]
fn the_prefixed_variable_overrides_the_hosts() {
    let given = [("ATELIER__DATABASE__URL", "sqlite:a"), ("DATABASE_URL", "postgres://b")];
    let config = read(None, variables(&given).unwrap()).unwrap();
    assert_eq!(config.database.url.as_deref(), Some("sqlite:a"));
    let config = read(None, variables(&given[1..]).unwrap()).unwrap();
    assert_eq!(config.database.url.as_deref(), Some("postgres://b"));
    let unset = read(None, variables(&[("ATELIER__SERVER__ADDRESS", "")]).unwrap()).unwrap();
    assert_eq!(unset, Config::default(), "an empty variable is ignored");
    assert!(!format!("{config:?}").contains("postgres"), "a URL may contain a password");
}

#[test]
fn an_empty_database_is_an_error() {
    for variable in ["DATABASE_URL", "ATELIER__DATABASE__URL"] {
        let error = read(None, variables(&[(variable, "")]).unwrap()).unwrap_err().to_string();
        assert!(error.contains("database.url is empty: ") && error.contains(variable), "{error}");
    }
    assert!(read(Some(file("[database]\nurl = \"\"").path()), Overrides::default()).is_err());
}

#[test]
fn an_error_names_the_origin_of_the_setting() {
    let message = |named: &str, given: &[(&str, &str)]| {
        let named = file(named);
        let overrides = variables(given)?;
        read(Some(named.path()), overrides)
    };
    let error = message("[server]\nadress = \"x\"", &[]).unwrap_err().to_string();
    assert!(error.starts_with("server.adress (the configuration file /"), "{error}");
    assert!(error.contains(", line 2): unknown field `adress`"), "{error}");
    let error = message("# Ours.\n\n[servers]\nport = 1", &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("servers (the configuration file /") && error.contains(", line 3): "),
        "{error}"
    );
    let error = message("", &[("ATELIER__SERVER__ADRESS", "x")]).unwrap_err().to_string();
    assert!(error.starts_with("server.adress (ATELIER__SERVER__ADRESS): unknown field `adress`"), "{error}");
    let error = message("[database]\nurl = \"postgres://u:secret@h/d", &[]).unwrap_err().to_string();
    assert!(error.contains(", line 2, is not TOML: "), "{error}");
    assert!(!error.contains("secret"), "{error}");
    let error = message("", &[("ATELIER__SERVER", "x")]).unwrap_err().to_string();
    assert!(error.starts_with("the variable ATELIER__SERVER names no setting"), "{error}");
    let error = read(Some(Path::new("/nowhere.toml")), Overrides::default()).unwrap_err();
    assert!(error.to_string().starts_with("the configuration file /nowhere.toml: No such file"));
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let message = |text: &str| read(Some(file(text).path()), Overrides::default());
    assert!(message("[limits]\nbody_bytes = 2048\nbulk_bytes = 2048").is_ok());
    assert!(message("[shop]\npublic_attributes = [\"name\", \"stock\"]").is_err());
    for (text, reason) in [
        ("[limits]\nbody_bytes = 10\n", "limits.body_bytes must be at least 1024, found 10"),
        (
            "[limits]\nbulk_bytes = 2000",
            "limits.bulk_bytes (2000) must be at least limits.body_bytes (1048576)",
        ),
        ("[limits]\nrow_bytes = 1000000", "limits.row_bytes is 1024 to 131072, found 1000000"),
        (
            "[profiles]\nmost_age_s = 0",
            "profiles.most_age_s (0) must be at least as long as profiles.fresh_ms (1000)",
        ),
        (
            "[access]\nsession_idle_s = 60",
            "access.session_idle_s must be at least 300, found 60: the last use of a session is stored only once a \
             minute",
        ),
        (
            "[access]\ncross_origins = \"https://shop.example https://shop.example/\"",
            "access.cross_origins: expected an origin such as https://shop.example, without a slash at the end; found \
             \"https://shop.example/\"",
        ),
        (
            "[access]\nsession_s = 3600",
            "access.session_s (3600) must be at least access.session_idle_s (43200)",
        ),
        ("[limits]\npage = 20", "limits.page_default (50) must be at most limits.page (20)"),
        (
            "[shop]\ncurrency = \"euro\"",
            "shop.currency: a currency has three capital letters, such as EUR, found \"euro\"",
        ),
        (
            "[shop]\nlocale = \"tlh\"",
            "shop.locale: a locale is one of en, en-US, de, de-CH, fr, it, es, pt, nl, sv, da, nb, fi, pl, cs, ja, found \"tlh\"",
        ),
        ("[tickets]\ndays = 0", "tickets.days must be from 1 to 3650, found 0"),
        ("[tickets]\nkey_days = 4000", "tickets.key_days must be from 1 to 3650, found 4000"),
        ("[limits]\nfeedback_events = 0", "limits.feedback_events must be at least 1, found 0"),
        (
            "[limits]\nbatch_suggestions = 100",
            "limits.batch_suggestions (100) must be at least limits.batch_items (256): each item has at least one \
             suggestion",
        ),
        ("[server]\ncertificate = \"c.pem\"", "server.certificate is set without server.key: TLS needs both"),
        ("[server]\nkey = \"k.pem\"", "server.key is set without server.certificate: TLS needs both"),
        ("[limits]\ncolumns = 1", "limits.columns must be at least 2, found 1"),
        (
            "[limits]\nstream_ms = 2000",
            "limits.stream_ms (2000) must be at least limits.transfer_ms (30000), which is for a part of a stream",
        ),
        (
            "[limits]\nidle_ms = 5000",
            "limits.idle_ms (5000) must be at least limits.head_ms (10000): the first byte of a request would leave \
             it less time",
        ),
        ("[limits]\ndeadline_ms = 0", "limits.deadline_ms must be at least 1, found 0"),
        (
            "[limits]\ndeadline_ms = 25000",
            "server.drain_ms (20000) must be at least limits.deadline_ms (25000): a stop would cancel requests \
             before their deadline",
        ),
        (
            "[engine]\nqueue = 100",
            "engine.queue (100) must be at least limits.batch_items (256): the queue would refuse a full batch",
        ),
        (
            "[engine]\nremote = \"http://triton:8000\"\ndevice = \"cuda\"",
            "engine.device sets the device of local models, and engine.remote uses a model server instead: \
             remove one of them",
        ),
        (
            "[engine]\nbatch = 2000",
            "engine.batch (2000) must be at least 1, and engine.queue (1024) at least engine.batch",
        ),
    ] {
        let error = message(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid settings: {reason} (")), "{error}");
        assert!(error.contains(" is from the configuration file /"), "{error}");
    }
    let error = message("[engine]\nremote = \"triton:8000\"").unwrap_err().to_string();
    assert!(error.starts_with("engine.remote (the configuration file /"), "{error}");
    assert!(
        error.ends_with("expected http://HOST:PORT or https://HOST:PORT, found \"triton:8000\""),
        "{error}"
    );
    // Settings from all origins are checked together.
    let overrides = variables(&[("ATELIER__SERVER__DRAIN_MS", "30000")]).unwrap();
    let named = file("[limits]\ndeadline_ms = 25000\n[engine]\nqueue = 256");
    assert_eq!(read(Some(named.path()), overrides).unwrap().server.drain(), Duration::from_secs(30));
    let overrides = variables(&[("ATELIER__LIMITS__PAGE", "20")]).unwrap();
    let error = read(Some(file("[limits]\nkey_rate = 5\npage_default = 40").path()), overrides).unwrap_err();
    let error = error.to_string();
    let expected = "limits.page_default (40) must be at most limits.page (20) (limits.page is from ATELIER__LIMITS__PAGE, \
                    limits.page_default is from the configuration file /";
    assert!(error.contains(expected) && !error.contains("key_rate"), "{error}");
    assert!(error.ends_with(", line 3)"), "{error}");
    let error = message("[limits]\npage = -1").unwrap_err().to_string();
    assert!(error.starts_with("limits.page (the configuration file /"), "{error}");
    assert!(error.contains("invalid value: integer `-1`"), "{error}");
}

#[test]
fn a_time_zone_is_of_the_iana_database() {
    let read = |text: &str| read(Some(file(text).path()), Overrides::default());
    let config = read("[shop]\ntime_zone = \"Europe/Zurich\"").unwrap();
    assert_eq!(config.shop.zone().name(), "Europe/Zurich");
    let error = read("[shop]\ntime_zone = \"CEST\"").unwrap_err().to_string();
    let expected = "shop.time_zone: expected a time zone such as Europe/Zurich or UTC, found \"CEST\"";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn any_setting_can_be_set_by_a_flag() {
    let mut overrides = variables(&[("ATELIER__LIMITS__PAGE", "70")]).unwrap();
    overrides.set_pair("limits.page=80").unwrap();
    overrides.set_pair("database.url=postgres://h/d?application_name=a=b").unwrap();
    overrides.set("models", "release", "--release", "spring");
    let config = read(Some(file("").path()), overrides).unwrap();
    assert_eq!((config.limits.page, config.models.release.as_str()), (80, "spring"));
    assert_eq!(config.database.url.as_deref(), Some("postgres://h/d?application_name=a=b"));

    let mut overrides = Overrides::default();
    let error = overrides.set_pair("limits.page").unwrap_err().to_string();
    assert_eq!(error, "--set takes SECTION.KEY=VALUE, as in --set limits.page=100");
    overrides.set_pair("limits.pages=80").unwrap();
    let error = read(Some(file("").path()), overrides).unwrap_err().to_string();
    assert!(error.starts_with("limits.pages (--set limits.pages): unknown field `pages`"), "{error}");
}

#[test]
fn an_address_is_a_host_and_a_port() {
    let check = |address: &str| {
        let overrides = variables(&[("ATELIER__SERVER__ADDRESS", address)]).unwrap();
        read(Some(file("").path()), overrides).map(|config| config.server.address)
    };
    for good in ["127.0.0.1:8080", "localhost:0", "[::1]:80", "0.0.0.0:65535"] {
        assert_eq!(check(good).unwrap(), good);
    }
    for bad in
        ["foo", "8080", ":8080", "127.0.0.1", "127.0.0.1:80x", "127.0.0.1:65536", "::1", "::1:80", "a:"]
    {
        let error = check(bad).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "invalid settings: server.address: expected HOST:PORT, such as 127.0.0.1:8080, found {bad:?} \
                 (server.address is from ATELIER__SERVER__ADDRESS)"
            )
        );
    }
}

#[test]
fn require_key_is_a_boolean() {
    let read = |value: &str| {
        let overrides = variables(&[("ATELIER__ACCESS__REQUIRE_KEY", value)]).unwrap();
        read(Some(file("").path()), overrides).map(|config| config.access.require_key)
    };
    assert!(read("").unwrap() && read("true").unwrap() && !read("false").unwrap());
    for refused in ["maybe", "auto", "1", "True"] {
        let error = read(refused).unwrap_err().to_string();
        assert!(error.ends_with("expected a boolean"), "{error}");
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
