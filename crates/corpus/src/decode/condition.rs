//! Structured conditions from the tree.

use workflow_yaml::Node;

use crate::Condition;

/// The condition a node that fits its shape stands for; `None` for one that does not fit.
pub(crate) fn condition(node: &Node) -> Option<Condition> {
    let text = |key: &str| node.get(key)?.as_str().map(str::to_owned);
    let parts = || -> Option<Vec<Condition>> { node.get("conditions")?.as_sequence()?.iter().map(condition).collect() };
    match node.get("type")?.as_str()? {
        "simple" => Some(Condition::Simple {
            variable: text("variable")?,
            operator: text("operator")?,
            value: node.get("value").map(Node::to_value),
        }),
        "and" => Some(Condition::And(parts()?)),
        "or" => Some(Condition::Or(parts()?)),
        "not" => Some(Condition::Not(Box::new(condition(node.get("condition")?)?))),
        _ => None,
    }
}
