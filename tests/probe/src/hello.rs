//! TLS client hellos with any server names, none, or several, in records of any size. They offer TLS 1.2, whose
//! certificates pass in the clear, so that an answer says by itself which server gave it.

/// The records of a client hello; each holds at most `fragment` bytes of it.
pub(crate) fn records(names: &[&str], fragment: Option<usize>) -> Vec<u8> {
    let message = message(names);
    let size = fragment.unwrap_or(message.len()).max(1);
    let mut out = Vec::new();
    for part in message.chunks(size) {
        out.extend([22, 3, 1]);
        out.extend(sized::<2>(part));
    }
    out
}

fn message(names: &[&str]) -> Vec<u8> {
    let mut extensions = Vec::new();
    let mut extension = |number: u16, body: Vec<u8>| {
        extensions.extend(number.to_be_bytes());
        extensions.extend(sized::<2>(&body));
    };
    if !names.is_empty() {
        let list: Vec<u8> = names
            .iter()
            .flat_map(|name| [vec![0], sized::<2>(name.as_bytes())].concat())
            .collect();
        extension(0, sized::<2>(&list));
    }
    // Curves x25519 and P-256, uncompressed points, ECDSA and RSA with SHA-256 and SHA-512.
    extension(10, sized::<2>(&[0, 29, 0, 23]));
    extension(11, sized::<1>(&[0]));
    extension(13, sized::<2>(&[4, 3, 8, 4, 4, 1, 6, 1]));

    let mut body = vec![3, 3];
    body.extend([0x5e; 32]);
    body.extend(sized::<1>(&[]));
    body.extend(sized::<2>(&[
        0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x2c, 0xc0, 0x30,
    ]));
    body.extend(sized::<1>(&[0]));
    body.extend(sized::<2>(&extensions));
    [vec![1], sized::<3>(&body)].concat()
}

/// `data` behind its length in `WIDTH` bytes.
fn sized<const WIDTH: usize>(data: &[u8]) -> Vec<u8> {
    let length = data.len().to_be_bytes();
    [&length[length.len() - WIDTH..], data].concat()
}
