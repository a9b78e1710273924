use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::*;

/// Answers one connection after the other, each with these texts in turn, and gives back what it was sent.
fn server(connections: Vec<Vec<&'static str>>) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = thread::spawn(move || {
        let mut requests = Vec::new();
        for answers in connections {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                let mut buffer = [0; 4096];
                let read = stream.read(&mut buffer).unwrap();
                requests.push(String::from_utf8_lossy(&buffer[..read]).into_owned());
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
        requests
    });
    (address, served)
}

fn client(address: SocketAddr) -> Client {
    Client::new(Origin::parse(&format!("http://{address}/models/")).unwrap())
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

#[test]
fn a_connection_is_kept_and_replaced_once_it_is_closed() {
    let (address, served) = server(vec![
        vec![
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab",
            "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        ],
        vec![
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nLate: 1\r\n\r\n",
        ],
        vec!["HTTP/1.0 200 OK\r\nX-A: b\r\n\r\nto the end"],
    ]);
    let mut client = client(address);
    let mut ask = || client.get("/x", soon()).unwrap();
    assert_eq!((ask().body, ask().status), (b"ab".to_vec(), 404));
    assert_eq!(ask().body, b"abc");
    let last = ask();
    assert_eq!((last.body.as_slice(), last.header("x-a")), (&b"to the end"[..], Some("b")));
    let requests = served.join().unwrap();
    assert_eq!(requests.len(), 4);
    assert_eq!(
        requests[0],
        format!("GET /models/x HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n")
    );
}

#[test]
fn what_goes_wrong_is_told_apart() {
    let (address, served) = server(vec![vec!["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"]]);
    let error = client(address).get("/", soon()).unwrap_err();
    assert!(matches!(error, HttpError::Unreachable { .. }), "{error}");
    served.join().unwrap();
    let error = client(address).get("/", soon()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("http://{address}/models cannot be reached: ")), "{error}");

    let (address, _served) = server(vec![vec!["SSH-2.0-x\r\n\r\n"]]);
    let error = client(address).get("/", soon()).unwrap_err();
    assert!(matches!(error, HttpError::Answer { .. }), "{error}");

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = client(silent.local_addr().unwrap());
    let error = client.get("/", Instant::now() + Duration::from_millis(30)).unwrap_err();
    assert!(matches!(error, HttpError::Late { .. }), "{error}");
}

#[test]
fn a_server_is_named_by_host_and_port() {
    let origin = |url: &str| Origin::parse(url).map(|origin| (origin.to_string(), origin.address));
    let named = |shown: &str, address: &str| Ok((shown.to_owned(), address.to_owned()));
    assert_eq!(origin("http://triton:8000/"), named("http://triton:8000", "triton:8000"));
    assert_eq!(origin("http://models"), named("http://models", "models:80"));
    assert_eq!(origin("http://[::1]:80/a/b"), named("http://[::1]:80/a/b", "[::1]:80"));
    for refused in
        ["https://triton", "triton:8000", "http://", "http://:80", "http://a:b", "http://u:p@h", "http://a b"]
    {
        assert!(Origin::parse(refused).is_err(), "{refused}");
    }
}
