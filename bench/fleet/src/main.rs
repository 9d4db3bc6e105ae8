//! Prints the highest rates of requests that services with 1 to 64 front ends bear, and which part of each limits it.
//!
//!     cargo run --release -p rootlight-fleet

use rootlight_fleet::costs::Costs;
use rootlight_fleet::fleet::Fleet;
use rootlight_fleet::report::{FleetRow, TABLE_HEAD, growing, relieved};

fn main() {
    let costs = Costs::default();
    println!("{costs:#?}\n\n{TABLE_HEAD}");
    growing(Fleet::new(1)).for_each(|fleet| println!("{}", FleetRow::of(fleet, &costs)));
    println!("\nOne more of the part that is full in each row:\n\n{TABLE_HEAD}");
    relieved(&costs).iter().for_each(|row| println!("{row}"));
    println!("\nWithout leases, so that each request is counted by the store:\n\n{TABLE_HEAD}");
    let each = Costs { lease: 1.0, ..costs };
    for shards in [1, 2, 4] {
        println!("{}", FleetRow::of(Fleet { shards, databases: 4, backends: 16, ..Fleet::new(64) }, &each));
    }
}
