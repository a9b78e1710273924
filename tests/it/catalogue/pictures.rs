use crate::harness::{Service, apply, on_sqlite};

#[apply(on_sqlite)]
async fn garments_are_drawn(service: Service) {
    let answer =
        service.get("/pictures/trench-coat.svg?colour=beige&pattern=checked&material=cotton").is(200);
    let answer = answer.await;
    assert_eq!(answer.header("content-type"), "image/svg+xml");
    assert_eq!(answer.header("cache-control"), "public, max-age=86400");
    let drawn = async |path: &str| service.get(format!("/pictures/{path}")).is(200).await.text();
    let coat = drawn("coat.svg?colour=beige").await;
    assert_eq!(coat, drawn("Coat.svg?colour=BEIGE&campaign=7").await);
    // Each part of the address is drawn.
    for other in ["parka.svg?colour=beige", "coat.svg?colour=red", "coat.svg?colour=beige&pattern=checked"] {
        assert_ne!(coat, drawn(other).await, "{other}");
    }
    assert_ne!(drawn("boot.svg?gender=women").await, drawn("boot.svg?gender=men").await);

    let hanger = drawn("spaceship.svg").await;
    assert_eq!(hanger, drawn(".svg?colour=&pattern=&material=").await);
    let odd = "%3Cscript%3Ealert(1)%3C/script%3E%22%27%26";
    let path = format!("%22%3E.svg?colour={odd}&pattern={odd}&material={odd}&gender={odd}");
    assert_eq!(hanger, drawn(&path).await, "no word of a query reaches the picture");
    assert_eq!(drawn("rain-boot.svg").await, drawn("boot.svg").await);
}

#[apply(on_sqlite)]
async fn other_files_are_not_found(service: Service) {
    for (path, status) in
        [("coat.png", 404), ("coat", 404), ("%ff.svg", 400), ("coat.svg?colour=red&colour=blue", 422)]
    {
        service.get(format!("/pictures/{path}")).await.assert_problem(status, &[]);
    }
}
