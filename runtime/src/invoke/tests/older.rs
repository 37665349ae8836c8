use selu_compiler::model::{Credential, CredentialScope, Project, Settings};
use selu_proto::v1::OlderInvokeResponse;
use serde_json::json;

use super::*;
use crate::testing::server::Older;
use crate::testing::{capability, project};

fn answer(result: &str, success: bool, error: &str) -> OlderInvokeResponse {
    OlderInvokeResponse {
        result: result.to_owned(),
        success,
        error: error.to_owned(),
    }
}

/// A call with the one credential that is named.
async fn call_with(client: &Client, credential: &str) -> Result<Vec<u8>, CallError> {
    let mut declaring = capability("b");
    declaring.credentials = vec![Credential {
        name: credential.to_owned(),
        scope: CredentialScope::System,
        required: true,
        description: String::new(),
    }];
    let project: Project = project(vec![("a", vec![declaring.clone()])]);
    assert_eq!(project.settings, Settings::default());
    let key = InstanceKey::new("a", "b");
    let variable = crate::secrets::variable(&key, credential);
    let (secrets, _) =
        Secrets::gather(&project, [(variable.into(), "value-1".into())], None).unwrap();
    let config = secrets
        .call_config(&key, &declaring.credentials, None)
        .unwrap();
    let args = Map::from_iter([("city".to_owned(), "Bern".into())]);
    let call = Call {
        tool: "t",
        args: &args,
        config: &config,
        session: "s",
        capability: "b",
        thread: "th",
        user: "anna",
        deadline: Duration::from_secs(20),
    };
    client.call(&call).await
}

#[tokio::test]
async fn the_older_dialect_is_found_by_its_health_check_and_gets_its_context_w4() {
    let older = Older::answering(|request| {
        let mut context: Vec<_> = request.context.into_iter().collect();
        context.sort();
        answer(
            &json!([request.tool_name, request.parameters, context]).to_string(),
            true,
            "",
        )
    });
    let client = older.client().await;
    let result = call_with(&client, "KEY").await.unwrap();
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(
        result,
        json!([
            "t",
            "{\"city\":\"Bern\"}",
            [
                ["KEY", "value-1"],
                ["capability_id", "b"],
                ["session_id", "s"],
                ["thread_id", "th"],
                ["user_id", "anna"],
            ]
        ])
    );
    assert_eq!(
        client.health(Duration::from_secs(5)).await.unwrap(),
        Health::Ready
    );
}

#[tokio::test]
async fn a_plain_text_of_the_older_dialect_is_a_json_text() {
    let older = Older::answering(|_| answer("It rains.", true, ""));
    let result = call_with(&older.client().await, "KEY").await.unwrap();
    assert_eq!(result, b"\"It rains.\"");
}

#[tokio::test]
async fn a_failure_of_the_older_dialect_is_one_by_either_sign() {
    for (success, error, text) in [
        (false, "", "gives no reason"),
        (false, "no such city", "no such city"),
        (true, "half a city", "half a city"),
    ] {
        let older = Older::answering(move |_| answer("{}", success, error));
        let failed = call_with(&older.client().await, "KEY").await.unwrap_err();
        assert!(matches!(failed, CallError::Tool { .. }), "{failed}");
        assert!(failed.to_string().contains(text), "{failed}");
    }
}

#[tokio::test]
async fn a_credential_may_not_replace_what_the_call_says_of_itself() {
    let older = Older::answering(|_| panic!("not to be called"));
    let refused = call_with(&older.client().await, "user_id")
        .await
        .unwrap_err();
    assert!(
        matches!(refused, CallError::ContextName { .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn the_older_dialect_streams_nothing_and_says_so() {
    let older = Older::answering(|_| panic!("not to be called"));
    let client = older.client().await;
    let upload = client.upload("f", "text/plain", &b"x"[..], Duration::from_secs(5));
    let refused = upload.await.unwrap_err();
    assert!(matches!(refused, CallError::NotInOlder { .. }), "{refused}");
}

#[tokio::test]
async fn a_tool_that_is_not_implemented_does_not_change_the_dialect() {
    let present = Scripted::answering(|_, _| Err(Status::unimplemented("later")));
    let client = present.client().await;
    for _ in 0..2 {
        let error = call(&client, Map::new()).await.unwrap_err();
        assert!(matches!(error, CallError::Unimplemented { .. }), "{error}");
    }
    assert_eq!(present.calls(), 2);
}
