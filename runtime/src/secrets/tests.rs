use super::*;
use crate::testing::{capability, project};
use selu_compiler::model::Credential;

fn credential(name: &str, scope: CredentialScope, required: bool) -> Credential {
    Credential {
        name: name.to_owned(),
        scope,
        required,
        description: String::new(),
    }
}

fn fixture(credentials: Vec<Credential>) -> (Project, InstanceKey) {
    let mut weather = capability("weather-api");
    weather.credentials = credentials;
    (
        project(vec![("my-agent", vec![weather])]),
        InstanceKey::new("my-agent", "weather-api"),
    )
}

fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(a, b)| (a.into(), b.into())).collect()
}

#[test]
fn a_bare_name_is_never_looked_up() {
    let (project, key) = fixture(vec![credential(
        "AWS_SECRET_ACCESS_KEY",
        CredentialScope::System,
        true,
    )]);
    let environment = env(&[("AWS_SECRET_ACCESS_KEY", "operators-own")]);
    let (secrets, _) = Secrets::gather(&project, environment, None).unwrap();
    let credentials = &project.agents["my-agent"].capabilities["weather-api"].credentials;
    let missing = secrets.discovery_config(&key, credentials).unwrap_err();
    assert_eq!(
        missing.missing[0].variable,
        "SELU_CRED__MY_AGENT__WEATHER_API__AWS_SECRET_ACCESS_KEY"
    );
}

#[test]
fn discovery_gets_declared_system_credentials_only() {
    let (project, key) = fixture(vec![
        credential("API_KEY", CredentialScope::System, true),
        credential("USER_TOKEN", CredentialScope::User, true),
    ]);
    let environment = env(&[
        ("SELU_CRED__MY_AGENT__WEATHER_API__API_KEY", "aaaa1111"),
        ("SELU_CRED__MY_AGENT__WEATHER_API__USER_TOKEN", "bbbb2222"),
        ("SELU_CRED__MY_AGENT__WEATHER_API__UNDECLARED", "cccc3333"),
    ]);
    let (secrets, unused) = Secrets::gather(&project, environment, None).unwrap();
    let credentials = &project.agents["my-agent"].capabilities["weather-api"].credentials;
    let config = secrets.discovery_config(&key, credentials).unwrap();
    assert_eq!(config.names(), ["API_KEY"]);
    assert_eq!(unused, ["SELU_CRED__MY_AGENT__WEATHER_API__UNDECLARED"]);
    assert_eq!(
        secrets.redactor().clean("bbbb2222 aaaa1111"),
        "[secret] [secret]"
    );
    assert!(!format!("{secrets:?}{config:?}").contains("1111"));
}

#[test]
fn two_credentials_that_share_a_variable_are_refused() {
    let (project, _) = fixture(vec![
        credential("token", CredentialScope::System, true),
        credential("TOKEN", CredentialScope::System, true),
    ]);
    let error = Secrets::gather(&project, env(&[]), None).unwrap_err();
    assert!(matches!(error, SecretsError::Ambiguous { .. }), "{error}");
}

#[test]
fn an_env_file_is_read_and_its_faults_name_the_line_without_the_value() {
    let (project, key) = fixture(vec![credential("A", CredentialScope::System, true)]);
    let read = |text| {
        let file = EnvFile {
            name: "x.env",
            text,
        };
        Secrets::gather(&project, env(&[]), Some(file))
    };
    let text = "# c\n\nexport SELU_CRED__MY_AGENT__WEATHER_API__A = 'with $dollar = #x'\r\n";
    let (secrets, _) = read(text).unwrap();
    let credentials = &project.agents["my-agent"].capabilities["weather-api"].credentials;
    let config = secrets.discovery_config(&key, credentials).unwrap();
    assert_eq!(config.expose()["A"], "with $dollar = #x");

    for (text, expected) in [
        ("\nhunter2", "x.env:2: expected NAME=value"),
        ("API=hunter2", "x.env:1: names in an env file"),
        (
            "SELU_CRED__A__B__C='hunter2",
            "x.env:1: the value of SELU_CRED__A__B__C opens a quote",
        ),
        (
            "SELU_CRED__A__B__C=1\nSELU_CRED__A__B__C=hunter2",
            "x.env:2: SELU_CRED__A__B__C is set twice",
        ),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn two_sources_that_disagree_are_refused_and_equal_ones_are_not() {
    let (project, _) = fixture(vec![credential("A", CredentialScope::System, true)]);
    let name = "SELU_CRED__MY_AGENT__WEATHER_API__A";
    let read = |value: &str| {
        let text = format!("{name}={value}");
        let file = EnvFile {
            name: "x.env",
            text: &text,
        };
        Secrets::gather(&project, env(&[(name, "one1")]), Some(file)).map(|_| ())
    };
    assert!(read("one1").is_ok());
    assert!(matches!(read("two2"), Err(SecretsError::Conflict { .. })));
}

#[test]
fn what_is_missing_is_told_by_name_and_for_whom() {
    let credentials = vec![
        credential("KEY", CredentialScope::System, true),
        credential("TOKEN", CredentialScope::User, true),
        credential("EXTRA", CredentialScope::User, false),
    ];
    let (project, key) = fixture(credentials.clone());
    let told = |secrets: &Secrets| {
        let missing = secrets.missing(&key, &credentials);
        missing.map(|missing| missing.to_string())
    };
    let nothing = Secrets::gather(&project, env(&[]), None).unwrap().0;
    assert_eq!(
        told(&nothing).unwrap(),
        "my-agent/weather-api needs credentials that are not set: KEY (set SELU_CRED__MY_AGENT__WEATHER_API__KEY), TOKEN \
         (one per user: say --user)"
    );
    let of = |name: &str, user: &str| Entry {
        instance: key.clone(),
        name: name.to_owned(),
        user: Some(user.to_owned()),
    };
    let mut stored = Stored::default();
    for entry in [of("TOKEN", "anna"), of("EXTRA", "ben")] {
        stored.values.insert(entry, "value".to_owned().into());
    }
    let granted = BTreeSet::from([key.clone()]);
    let some = Secrets::default().with_store(stored, &granted);
    let some = told(&some).unwrap();
    assert!(some.contains("TOKEN of user ben"), "{some}");
    assert!(!some.contains("anna"), "{some}");
    assert_eq!(some.matches("KEY (").count(), 1, "{some}");
}
