// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.20;

/// Keeps deposits of its owner until a time.
contract Savings {
    event Deposited(address indexed from, uint256 value);
    event Withdrawn(uint256 value);

    error NotOwner(address caller, address owner);

    address public immutable owner;
    uint256 public immutable end;

    constructor(uint256 end_) payable {
        require(end_ > block.timestamp, "the end has passed");
        owner = msg.sender;
        end = end_;
    }

    function deposit() external payable {
        emit Deposited(msg.sender, msg.value);
    }

    function withdraw() external {
        if (msg.sender != owner) revert NotOwner(msg.sender, owner);
        require(block.timestamp >= end, "too early");
        uint256 value = address(this).balance;
        emit Withdrawn(value);
        (bool sent, ) = owner.call{value: value}("");
        require(sent, "not sent");
    }
}
