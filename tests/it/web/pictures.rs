use super::Service;
use crate::harness::{apply, on_sqlite};

#[apply(on_sqlite)]
async fn garments_are_drawn(service: Service) {
    let answer =
        service.get("/pictures/trench-coat.svg?colour=beige&pattern=checked&material=cotton").is(200).await;
    assert_eq!(answer.header("content-type"), "image/svg+xml");
    assert_eq!(answer.header("cache-control"), "public, max-age=86400");
    let beige = answer.text();
    assert!(
        beige.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 200 240\">"),
        "{beige}"
    );
    assert!(beige.contains("<pattern") && beige.ends_with("</svg>"), "{beige}");

    let drawn = async |path: &str| service.get(path).await.text();
    let coat = drawn("/pictures/coat.svg?colour=beige").await;
    assert_ne!(coat, drawn("/pictures/parka.svg?colour=beige").await);
    assert_ne!(coat, drawn("/pictures/coat.svg?colour=red").await);
    assert_eq!(coat, drawn("/pictures/Coat.svg?colour=BEIGE&campaign=7").await);
    let boot = drawn("/pictures/boot.svg?gender=women").await;
    assert_ne!(boot, drawn("/pictures/boot.svg?gender=men").await);
}

#[apply(on_sqlite)]
async fn unknown_garments_get_a_placeholder(service: Service) {
    let drawn = async |path: &str| {
        let answer = service.get(path).await;
        assert_eq!((answer.status(), answer.header("content-type")), (200, "image/svg+xml"), "{path}");
        answer.text()
    };
    let hanger = drawn("/pictures/spaceship.svg").await;
    assert_eq!(hanger, drawn("/pictures/.svg?colour=&pattern=&material=").await);
    let odd = "%3Cscript%3Ealert(1)%3C/script%3E%22%27%26";
    let path = format!("/pictures/{}.svg?colour={odd}&pattern={odd}&material={odd}&gender={odd}", "%22%3E");
    assert_eq!(hanger, drawn(&path).await, "no word of a query reaches the picture");
    assert_eq!(drawn("/pictures/rain-boot.svg").await, drawn("/pictures/boot.svg").await);
}

#[apply(on_sqlite)]
async fn other_files_are_not_found(service: Service) {
    for (path, status) in [
        ("/pictures/coat.png", 404),
        ("/pictures/coat", 404),
        ("/pictures/%ff.svg", 400),
        ("/pictures/coat.svg?colour=red&colour=blue", 422),
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
    }
}
