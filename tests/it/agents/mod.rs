//! MCP.

pub mod mcp;
