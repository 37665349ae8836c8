use super::*;
use crate::egress::worker::testing::{HOST, World, server};

fn dialer(world: &Arc<World>) -> Dialer {
    let reach = Reach::new(
        &[HOST.parse().unwrap()],
        &["10.231.0.0/16".parse().unwrap()],
    );
    Dialer::new(reach, Some(Arc::new(Arc::clone(world))))
}

fn target(name: &str) -> Target {
    Target {
        host: Host::read(name).unwrap(),
        port: 443,
    }
}

async fn refusal(answers: &[&str], private: bool) -> Reason {
    let world = Arc::new(World::default());
    let (_listener, address) = server().await;
    for answer in answers {
        let ip: IpAddr = answer.parse().unwrap();
        world.host(&SocketAddr::new(ip, 443).to_string(), address);
    }
    world.name("a.example.com", answers);
    let dialled = dialer(&world).dial(&target("a.example.com"), private).await;
    dialled.err().unwrap()
}

#[tokio::test]
async fn d09_a_name_is_looked_up_once_a_connection_and_the_judged_address_dialled() {
    let world = Arc::new(World::default());
    let (_listener, address) = server().await;
    world.name("a.example.com", &["93.184.216.34"]);
    world.host("93.184.216.34:443", address);
    let (stream, dialled) = dialer(&world)
        .dial(&target("a.example.com"), false)
        .await
        .unwrap();
    assert_eq!(dialled.to_string(), "93.184.216.34");
    assert_eq!(stream.peer_addr().unwrap(), address);
    assert_eq!(*world.asked.lock().unwrap(), ["a.example.com"]);
    // Its answer changes: what was judged before says nothing of it.
    world.name("a.example.com", &["127.0.0.1"]);
    world.host("127.0.0.1:443", address);
    let again = dialer(&world).dial(&target("a.example.com"), true).await;
    assert_eq!(
        again.err(),
        Some(Reason::NotGlobal("127.0.0.1".parse().unwrap()))
    );
    assert_eq!(world.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn d08_a_name_with_an_address_inside_is_refused_alone_or_among_others() {
    const PUBLIC: &str = "93.184.216.34";
    for inside in [
        "169.254.169.254",
        "127.0.0.1",
        "10.0.0.5",
        "fd00::1",
        "0.0.0.0",
        "100.64.0.1",
    ] {
        let address: IpAddr = inside.parse().unwrap();
        for answers in [&[inside][..], &[PUBLIC, inside], &[inside, PUBLIC]] {
            let refused = refusal(answers, false).await;
            assert!(
                refused == Reason::Private(address) || refused == Reason::NotGlobal(address),
                "{answers:?}: {refused}"
            );
        }
    }
    // A permission is for private addresses, and opens nothing else.
    let refused = refusal(&["169.254.169.254"], true).await;
    assert!(matches!(refused, Reason::NotGlobal(_)), "{refused}");
    let world = Arc::new(World::default());
    let (_listener, address) = server().await;
    world.name("db.example.com", &["10.0.0.5"]);
    world.host("10.0.0.5:443", address);
    let dialled = dialer(&world).dial(&target("db.example.com"), true).await;
    assert_eq!(dialled.unwrap().1.to_string(), "10.0.0.5");
}

#[tokio::test]
async fn one_answer_that_is_not_global_refuses_them_all() {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(
        refusal(&["93.184.216.34", "10.0.0.1"], false).await,
        Reason::Private(ip("10.0.0.1"))
    );
    assert_eq!(
        refusal(&["93.184.216.34", "169.254.169.254"], true).await,
        Reason::NotGlobal(ip("169.254.169.254"))
    );
    assert_eq!(
        refusal(&["93.184.216.34", "::1"], true).await,
        Reason::NotGlobal(ip("::1"))
    );
    assert_eq!(refusal(&[HOST], true).await, Reason::HostAddress(ip(HOST)));
    assert_eq!(
        refusal(&["10.231.9.9"], true).await,
        Reason::OwnRange(ip("10.231.9.9"))
    );
}

#[tokio::test]
async fn a_literal_is_judged_like_an_answer() {
    let world = Arc::new(World::default());
    let dialled = dialer(&world).dial(&target("127.0.0.1"), true).await;
    assert!(matches!(dialled, Err(Reason::NotGlobal(_))));
    assert!(world.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_address_that_does_not_answer_gives_way_to_the_next() {
    let world = Arc::new(World::default());
    let (_listener, address) = server().await;
    world.name("a.example.com", &["93.184.216.34", "93.184.216.35"]);
    world.host("93.184.216.35:443", address);
    let (_, dialled) = dialer(&world)
        .dial(&target("a.example.com"), false)
        .await
        .unwrap();
    assert_eq!(dialled.to_string(), "93.184.216.35");
}

#[tokio::test]
async fn what_cannot_be_reached_says_why() {
    let failed = refusal(&["2606:4700::1111"], false).await;
    assert_eq!(
        failed.to_string(),
        "no connection: the gateway reaches IPv4 alone"
    );
    assert_eq!(refusal(&[], false).await, Reason::NoSuchName);
    let world = Arc::new(World::default());
    let unknown = dialer(&world).dial(&target("b.example.com"), false).await;
    assert_eq!(unknown.err(), Some(Reason::NoSuchName));
    let shut = Dialer::new(Reach::default(), None);
    let refused = shut
        .dial(&target("a.example.com"), false)
        .await
        .err()
        .unwrap();
    assert!(refused.is_failure(), "{refused}");
}

#[test]
fn only_the_addresses_of_a_resolv_conf_count() {
    let text = "# nameserver 192.0.2.1\nsearch corp.example\nnameserver 127.0.0.11\noptions ndots:0\nnameserver ::1\nnameserver nonsense\nnameservers 192.0.2.2\n";
    let servers: Vec<String> = name_servers(text).map(|s| s.to_string()).collect();
    assert_eq!(servers, ["127.0.0.11", "::1"]);
}
