//! Prints the tables of docs/trust about Bitcoin's evidence: `cargo run -p rootlight-bench --release --bin bitcoin_window`.

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    tables::print();
}

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
mod tables {
    use fastrand::Rng;
    use rootlight::light::bitcoin::MAX_LAG;
    use rootlight_bench::bitcoin_window::{
        HEADERS, Miners, Outcome, Skeleton, exact_acceptance, exact_contest, foreign_tags, forged_tags,
        forged_window, honest_window, made_up,
    };

    const DRAWS: u32 = 10_000;
    /// Work of a canonical header in thousandths of a Bitcoin block: 6.44e21 of 5.42e23 hashes.
    const HEADER_MILLI: f64 = 11.88;
    const POOLS: [f64; 3] = [0.10, 0.20, 0.30];

    pub(super) fn print() {
        let bitcoin = Skeleton::mined(600);
        honest(&bitcoin);
        let refused = (0..DRAWS).filter(|draw| {
            let report = forged_window(&bitcoin, &mut Rng::with_seed(u64::from(*draw)));
            report.lags() || report.low().is_some() || report.judged < 12
        });
        println!(
            "\nForged windows that break a bound of dated work: {} of {DRAWS} refused.",
            refused.count()
        );
        acceptance();
        contested();
        noticed();
        costs();
    }

    fn honest(bitcoin: &Skeleton) {
        println!("Honest windows that a rule refuses, of {DRAWS}:\n");
        println!(
            "| canonical work | tagged | uncles proven | 7 % over 12 or more | floors as built | lag above 2 | above {MAX_LAG} | tags | any |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for (canonical, tagged) in [(0.125, 0.25), (0.198, 0.45), (0.25, 0.47), (0.31, 0.50)] {
            for uncles_proven in [0.0, 0.97] {
                refused(bitcoin, Miners { canonical, tagged, uncles_proven });
            }
        }
    }

    fn refused(bitcoin: &Skeleton, miners: Miners) {
        let Miners { canonical, tagged, uncles_proven } = miners;
        let mut rng = Rng::with_seed((canonical * 1_000.0 + uncles_proven * 100.0) as u64);
        let all: Vec<Outcome> = (0..DRAWS).map(|_| honest_window(bitcoin, miners, &mut rng)).collect();
        let count = |refused: fn(&Outcome) -> bool| all.iter().filter(|found| refused(found)).count();
        println!(
            "| {canonical} | {tagged} | {uncles_proven} | {} | {} | {} | {} | {} | {} |",
            count(|found| found.least_share < 700),
            count(|found| found.dated.low().is_some()),
            count(|found| found.dated.lag.is_none_or(|lag| lag > 2)),
            count(|found| found.dated.lags()),
            count(|found| found.tags.is_err()),
            count(|found| !found.holds()),
        );
    }

    fn acceptance() {
        println!("\nAcceptance of a forged chain's tags at an honest share of 0.45:\n");
        println!(
            "| attacker | 36 | 72 | both | simulated 36 | simulated 72 | both |\n|---|---|---|---|---|---|---|"
        );
        for attacker in POOLS {
            let [few, many, both] = exact_acceptance(attacker, 0.45);
            let mut rng = Rng::with_seed(643);
            let draws = 20 * DRAWS;
            let all: Vec<[bool; 2]> = (0..draws).map(|_| forged_tags(attacker, 0.45, 76, &mut rng)).collect();
            let share = |accepted: fn(&[bool; 2]) -> bool| {
                all.iter().filter(|found| accepted(found)).count() as f64 / f64::from(draws)
            };
            println!(
                "| {attacker:.2} | {few:.1e} | {many:.1e} | {both:.1e} | {:.1e} | {:.1e} | {:.1e} |",
                share(|found| found[0]),
                share(|found| found[1]),
                share(|found| found[0] && found[1]),
            );
        }
        println!(
            "\nThe same for a chain that left the honest one some Bitcoin blocks ago, simulated, at 36 and 72:\n"
        );
        println!("| attacker | 12 | 24 | 36 | 48 | 72 |\n|---|---|---|---|---|---|");
        for attacker in POOLS {
            print!("| {attacker:.2} |");
            for blocks in [12, 24, 36, 48, 72] {
                let mut rng = Rng::with_seed(644);
                let accepted =
                    (0..DRAWS).filter(|_| forged_tags(attacker, 0.45, blocks, &mut rng) == [true; 2]);
                print!(" {:.4} |", accepted.count() as f64 / f64::from(DRAWS));
            }
            println!();
        }
    }

    /// Beside a pool that writes made-up tags into all its blocks, and for a chain that the pool makes alone.
    fn contested() {
        println!("\nVerdicts by tags at an honest share of 0.45:\n");
        println!(
            "| pool | honest chain beside made-up tags: not accepted | contested | false chain of the pool: accepted | contested |"
        );
        println!("|---|---|---|---|---|");
        for pool in [0.05, 0.10, 0.20, 0.30] {
            let ([_, _, honest], [_, _, forged]) =
                (exact_acceptance(0.45, pool), exact_acceptance(pool, 0.45));
            let (beside, found) = (exact_contest(0.45, pool), exact_contest(pool, 0.45));
            println!("| {pool:.2} | {:.4} | {beside:.1e} | {forged:.1e} | {found:.4} |", 1.0 - honest);
        }
        println!("\nMade-up tags that agree, at least so many in the newest 72 blocks:\n");
        println!("| pool | 2 | 3 | 4 |\n|---|---|---|---|");
        for pool in [0.005, 0.01, 0.02, 0.05, 0.10] {
            let [two, three, four] = [2, 3, 4].map(|least| made_up(pool, least));
            println!("| {pool:.3} | {two:.3} | {three:.3} | {four:.3} |");
        }
    }

    fn noticed() {
        println!("\nA hidden branch is noticed, by one foreign tag / by two, three, four that agree:\n");
        println!("| blocks of the branch | 10 % pool | 20 % | 30 % |\n|---|---|---|---|");
        for blocks in [60, 120, 240, 480, 1_440] {
            print!("| {blocks} |");
            for pool in POOLS {
                let mut rng = Rng::with_seed(110);
                let found: Vec<u32> = (0..DRAWS).map(|_| foreign_tags(pool, blocks, &mut rng)).collect();
                let share =
                    |least| found.iter().filter(|tags| **tags >= least).count() as f64 / f64::from(DRAWS);
                print!(" {:.3} / {:.3} / {:.3} / {:.3} |", share(1), share(2), share(3), share(4));
            }
            println!();
        }
    }

    fn costs() {
        println!(
            "\nCost of a forgery of a block and those above it, at {HEADER_MILLI} thousandths of a Bitcoin block for a header:\n"
        );
        println!(
            "| depth in headers | Bitcoin blocks | 10 % pool | 20 % | 30 % | no Bitcoin block commits above it |"
        );
        println!("|---|---|---|---|---|---|");
        for depth in [1u32, 12, 120, 480, 1_440, 2_880] {
            let milli = f64::from(depth) * HEADER_MILLI;
            print!("| {depth} | {:.2} |", milli / 1_000.0);
            for pool in POOLS {
                print!(" {:.1} h |", milli / 1_000.0 / 6.0 / pool);
            }
            println!(" {:.4} |", (1.0 - HEADER_MILLI / 1_000.0).powf(f64::from(depth)));
        }
        println!("\n{HEADERS} headers for each Bitcoin block.");
    }
}
