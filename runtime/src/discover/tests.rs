use super::*;
use crate::testing::server::Scripted;
use selu_compiler::model::CredentialScope;
use selu_proto::v1::InvokeResponse;

fn key() -> InstanceKey {
    InstanceKey::new("a", "b")
}

fn wanted<'a>(key: &'a InstanceKey, credentials: &'a [Credential]) -> Wanted<'a> {
    Wanted {
        instance: key,
        tool: "list_tools",
        credentials,
        session: "default",
        deadline: Duration::from_secs(20),
    }
}

async fn run(server: &Scripted, credentials: &[Credential]) -> Result<Found, DiscoveryError> {
    let key = key();
    discover(wanted(&key, credentials), &Secrets::default(), async |_| {
        Ok(server.client().await)
    })
    .await
}

const ONE_TOOL: &str = r#"[{"name": "t", "description": "d", "input_schema": {"type": "object"}}]"#;

#[tokio::test]
async fn a_failed_attempt_is_tried_once_more_and_not_twice() {
    let flaky = Scripted::answering(|number, _| match number {
        0 => Err(tonic::Status::internal("warming up")),
        _ => Ok(InvokeResponse {
            result_json: ONE_TOOL.into(),
            error: String::new(),
        }),
    });
    let found = run(&flaky, &[]).await.unwrap();
    assert_eq!(found.discovered.tools.len(), 1);

    let broken = Scripted::answering(|_, _| Err(tonic::Status::internal("down")));
    run(&broken, &[]).await.unwrap_err();
    assert_eq!(broken.calls(), 2);
}

#[tokio::test]
async fn what_failed_first_is_told_where_the_second_attempt_fails_in_another_way() {
    let message = async |texts: [&'static str; 2]| {
        let server =
            Scripted::answering(move |number, _| Err(tonic::Status::internal(texts[number])));
        run(&server, &[]).await.unwrap_err().to_string()
    };
    let both = message(["the cause", "the consequence"]).await;
    assert!(
        both.find("the cause") < both.find("the consequence"),
        "{both}"
    );
    assert!(both.contains("once more"), "{both}");
    let same = message(["down", "down"]).await;
    assert!(!same.contains("once more"), "{same}");
}

#[tokio::test]
async fn a_missing_required_system_credential_stops_discovery_before_any_call() {
    let server = Scripted::listing(ONE_TOOL);
    let mut credential = Credential {
        name: "KEY".to_owned(),
        scope: CredentialScope::System,
        required: true,
        description: String::new(),
    };
    let error = run(&server, std::slice::from_ref(&credential))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("SELU_CRED__A__B__KEY"),
        "{error}"
    );
    assert_eq!(server.calls(), 0);

    credential.scope = CredentialScope::User;
    run(&server, &[credential]).await.unwrap();
    assert_eq!(server.calls(), 1, "a user's value is not needed (C4)");
}

#[tokio::test]
async fn a_missing_discovery_tool_is_named_in_each_way_to_say_it() {
    for answer in [
        Err(tonic::Status::unimplemented("nope")),
        Err(tonic::Status::not_found("Unknown tool: list_tools")),
        Ok(InvokeResponse {
            result_json: Vec::new(),
            error: "unknown tool list_tools".to_owned(),
        }),
    ] {
        let server = Scripted::answering(move |_, _| answer.clone());
        let error = run(&server, &[]).await.unwrap_err();
        assert!(
            matches!(error, DiscoveryError::NoDiscoveryTool { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("list_tools"), "{error}");
    }
}

#[tokio::test]
async fn a_list_that_holds_a_value_is_refused_and_not_quoted() {
    let credential = Credential {
        name: "KEY".to_owned(),
        scope: CredentialScope::System,
        required: true,
        description: String::new(),
    };
    let mut owner = crate::testing::capability("b");
    owner.credentials = vec![credential.clone()];
    let project = crate::testing::project(vec![("a", vec![owner])]);
    let environment = [("SELU_CRED__A__B__KEY".into(), "hunter2-secret".into())];
    let secrets = Secrets::gather(&project, environment, None).unwrap().0;
    for list in [
        ONE_TOOL.replace("\"d\"", "\"uses hunter2-secret\""),
        ONE_TOOL.replace(
            "\"object\"",
            "\"object\", \"title\": \"hunter2-\\u0073ecret\"",
        ),
    ] {
        let server = Scripted::answering(move |_, _| {
            Ok(InvokeResponse {
                result_json: list.clone().into_bytes(),
                error: String::new(),
            })
        });
        let key = key();
        let wanted = wanted(&key, std::slice::from_ref(&credential));
        let found = discover(wanted, &secrets, async |_| Ok(server.client().await)).await;
        let error = found.unwrap_err();
        assert!(matches!(error, DiscoveryError::Secret { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}
