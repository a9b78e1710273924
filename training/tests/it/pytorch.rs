//! `training/pytorch/fit.py` on a prepared run. `PYTHON` names a Python that has PyTorch; otherwise it is `python3`.

use std::{
    env,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::Home;

fn python() -> Command {
    Command::new(env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned()))
}

fn learn(home: &Home, run: &str, processes: usize) -> Vec<f64> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/pytorch/fit.py");
    let mut command = python();
    if processes > 1 {
        command.args(["-m", "torch.distributed.run", "--standalone"]);
        command.arg(format!("--nproc-per-node={processes}"));
    }
    command.arg(script).arg(home.at(run)).args(["--device", "cpu"]).env("OMP_NUM_THREADS", "1");
    assert!(command.status().unwrap().success(), "{run}");
    let loss = |epoch: &Value| epoch["development"]["cross_entropy"].as_f64().unwrap();
    home.rows(&format!("{run}/metrics.jsonl")).iter().map(loss).collect()
}

#[test]
fn two_processes_of_pytorch_learn_what_one_does() {
    let imported = python().args(["-c", "import torch, safetensors"]).stderr(Stdio::null()).status();
    if !imported.is_ok_and(|status| status.success()) {
        println!("NOT RUN: two_processes_of_pytorch_learn_what_one_does (Python has no PyTorch)");
        return;
    }
    let home = Home::new();
    home.output_of("synthesise --articles 200 --customers 100 --outfits 600 --validation 60 --out world");
    for method in ["gsu", "match"] {
        let [one, two] = [1, 2].map(|processes| {
            let run = format!("{method}-{processes}");
            // Each process draws its own dropout.
            home.output_of(&format!(
                "fit --method {method} --data world --run {run} --prepare --epochs 3 --set fit.batch=32 --set \
                 model.dropout=0 --set model.dropout_elsewhere=0"
            ));
            learn(&home, &run, processes)
        });
        println!("{method}: one process {one:?}, two {two:?}");
        assert_eq!(one.len(), 3);
        assert!(one.iter().zip(&two).all(|(one, two)| (one - two).abs() < 1e-3), "{one:?} {two:?}");
        assert!(one[2] < one[0], "{one:?}");
        home.output_of(&format!("export --run {method}-2 --out {method}"));
        assert!(home.at(&format!("{method}/{method}.safetensors")).exists());
    }
}
