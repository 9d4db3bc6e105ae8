//! Direct changes for tests that no transaction can make: reverting to a snapshot, beginning a fork anew, changing accounts,
//! dropping transactions from the pool.

use alloc::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};

use super::chain::{DevChain, DevSnapshot};
use super::clock::Clock;
use super::config::ForkStart;
use super::error::DevError;
use super::limits::MAX_SNAPSHOTS;
use super::miner_settings::MinerSettings;
use crate::consensus::VerifiedHeader;
use crate::evm::precompiles::Precompile;
use crate::local::LocalChain;
use crate::state::World;

impl DevChain {
    /// Takes a snapshot of the chain and returns its number. Numbers start at 1.
    ///
    /// # Errors
    /// There are [`MAX_SNAPSHOTS`] already.
    pub fn save(&mut self) -> Result<u64, DevError> {
        if self.snapshots.len() >= MAX_SNAPSHOTS {
            return Err(DevError::TooManySnapshots);
        }
        let mut chain = self.chain.clone();
        chain.forget_events();
        Arc::make_mut(&mut self.snapshots).push(DevSnapshot {
            chain,
            clock: self.clock,
            miner_settings: self.miner_settings.clone(),
        });
        Ok(self.snapshots.len() as u64)
    }

    /// The snapshots: the number of each, and its head.
    pub fn saved(&self) -> impl Iterator<Item = (u64, &VerifiedHeader)> {
        (1..).zip(&*self.snapshots).map(|(id, saved)| (id, saved.chain.head()))
    }

    /// Reverts to a snapshot with its settings; returns `false` if no snapshot has this number. The snapshot stays, later
    /// ones are removed, and the pool is emptied, as in the reference node.
    pub fn revert(&mut self, id: u64) -> bool {
        let Some(index) = id.checked_sub(1).and_then(|index| usize::try_from(index).ok()) else {
            return false;
        };
        let Some(saved) = self.snapshots.get(index).cloned() else { return false };
        Arc::make_mut(&mut self.snapshots).truncate(index.saturating_add(1));
        self.go_to(saved);
        true
    }

    /// Reverts to the first block (block 0, or the block on which a fork begins) and to the settings of the start, and removes all
    /// snapshots.
    pub fn reset(&mut self) {
        self.snapshots = Arc::default();
        self.go_to(self.start.clone());
    }

    /// Begins the fork again on another block of the network: the block of height `number` on the chain that the upstream at `url`
    /// shows. Without `url` it is a block of the same chain, without `number` the head of the chain. Removes all snapshots.
    ///
    /// # Errors
    /// [`DevError::NoFork`] if the chain is no fork, or if the block is not fetched yet: it is then noted as missing, and the host
    /// runs the message again with it.
    pub fn reset_to(&mut self, url: Option<&str>, number: Option<u64>) -> Result<(), DevError> {
        let old = self.fork.as_ref().ok_or(DevError::NoFork)?;
        let fork = old.fork.other_start(url, number).ok_or(DevError::NoFork)?;
        let start = ForkStart { fork, funded: old.funded.clone() };
        let (network, history) = (self.chain.view().headers().network().clone(), self.chain.history());
        let chain = LocalChain::above(network, start.fork.clone(), start.state(), history);
        // `above` gives no error for a verified block.
        let mut chain = chain.map_err(|_| DevError::NoFork)?;
        chain.share_caches(&self.chain);
        let header = start.fork.block();
        let gas_limit = u64::try_from(header.gas_limit.value());
        let settings = self.start.miner_settings.clone();
        self.start = DevSnapshot {
            chain,
            clock: Clock::default(),
            miner_settings: MinerSettings {
                gas_limit: gas_limit.unwrap_or(settings.gas_limit),
                minimum_gas_price: header.minimum_gas_price.value(),
                ..settings
            },
        };
        self.fork = Some(start);
        self.reset();
        Ok(())
    }

    /// Replaces the chain and its settings by those of a snapshot, and empties the pool.
    fn go_to(&mut self, saved: DevSnapshot) {
        self.chain.replace(saved.chain);
        self.clock = saved.clock;
        self.miner_settings = saved.miner_settings;
        self.pool.clear();
        self.work.clear();
    }

    /// Drops a transaction from the pool; returns `false` if the pool has none with this hash.
    pub fn drop_transaction(&mut self, hash: &B256) -> bool {
        self.pool.remove(hash).is_some()
    }

    /// Drops all transactions of the pool, or those of one sender.
    pub fn drop_transactions(&mut self, sender: Option<&Address>) {
        let Some(sender) = sender else { return self.pool.clear() };
        let lists = [self.pool.pending(), self.pool.queued()];
        for pooled in lists.iter().filter_map(|all| all.get(sender)).flatten() {
            self.pool.remove(&pooled.hash);
        }
    }

    /// Sets the balance of an account, in wei.
    pub fn set_balance(&mut self, address: &Address, balance: U256) {
        self.edit(|world| {
            let account = world.account(address).unwrap_or_default();
            world.set_account(address, crate::state::Account { balance, debt: U256::ZERO, ..account });
        });
    }

    /// Sets the nonce of an account and updates the pool accordingly.
    pub fn set_nonce(&mut self, address: &Address, nonce: u64) {
        self.edit(|world| {
            let account = world.account(address).unwrap_or_default();
            world.set_account(address, crate::state::Account { nonce, ..account });
        });
        self.settle_sender(address);
    }

    /// Sets the code of an account. The account is a contract from then on.
    ///
    /// # Errors
    /// [`DevError::Native`] for the address of a native contract.
    pub fn set_code(&mut self, address: &Address, code: Bytes) -> Result<(), DevError> {
        let next = self.chain.head().number.saturating_add(1);
        if Precompile::at(address, self.chain.view().network().rules(next)).is_some() {
            return Err(DevError::Native(*address));
        }
        self.edit(|world| {
            make_contract(world, address);
            world.set_code(address, code);
        });
        Ok(())
    }

    /// Sets a storage cell of an account. The account is a contract from then on.
    pub fn set_storage(&mut self, address: &Address, slot: &U256, value: U256) {
        self.edit(|world| {
            make_contract(world, address);
            world.set_word(address, slot, value);
        });
    }

    /// Changes the state after the head block, outside of any transaction.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut World)) {
        let mut world = World::new(self.chain.view().head_state());
        change(&mut world);
        self.chain.set_head_state(world.commit());
        // The blocks of external miners were built on the state before the change.
        self.work.clear();
    }
}

/// Creates the account if it does not exist, and sets the marker in the trie that makes it a contract.
fn make_contract(world: &mut World, address: &Address) {
    if world.account(address).is_none() {
        world.create(address);
    }
    if !world.marker(address) {
        world.set_marker(address);
    }
}
