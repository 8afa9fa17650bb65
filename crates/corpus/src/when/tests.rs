use serde_json::json;

use super::*;

/// The tree in prefix form.
fn prefix(expr: &Expr) -> String {
    let fold = |name: &str, parts: &[Expr]| {
        let mut parts = parts.iter().map(prefix);
        let first = parts.next().unwrap_or_default();
        parts.fold(first, |left, right| format!("({name} {left} {right})"))
    };
    match expr {
        Expr::Constant(value) => format!("(const {value})"),
        Expr::Truthy(path) => path.clone(),
        Expr::Compare { path, operator, operand } => format!("({operator} {path} {operand})"),
        Expr::Not(inner) => format!("(not {})", prefix(inner)),
        Expr::And(parts) => fold("and", parts),
        Expr::Or(parts) => fold("or", parts),
    }
}

fn holds(expression: &str, bag: Value) -> bool {
    let Value::Object(bag) = bag else { panic!("a bag is an object") };
    parse(expression).is_ok_and(|expr| expr.holds(&bag))
}

#[test]
fn expressions_parse() {
    #[track_caller]
    fn check(expression: &str, tree: &str) {
        assert_eq!(parse(expression).map(|expr| prefix(&expr)).as_deref(), Ok(tree), "{expression}");
    }
    check("a", "a");
    check("true", "(const true)");
    check("!!a", "(not (not a))");
    check("a || b && c", "(or a (and b c))");
    check("a && (b || c) && d", "(and (and a (or b c)) d)");
    check("a == ''", "(== a \"\")");
    check("a..b", "a..b");
    check("a.", "a.");
    check("a == -1", "(== a -1)");
    check("a == b.c", "(== a \"b.c\")");
    check("!a == false", "(not (== a false))");
    check("a == TRUE", "(== a \"TRUE\")");
    check("a==1&&b", "(and (== a 1) b)");
    check(r#"a == "x\"y""#, r#"(== a "x\"y")"#);
    check("_x", "_x");
    check(r"a == 'x\ny'", "(== a \"xny\")");
    check("a\u{a0}==\u{2003}null", "(== a null)");
}

#[test]
fn errors_say_what_and_where() {
    use WhenErrorKind::{
        Empty, MissingParenthesis, MissingValue, TooDeep, TrailingInput, UnclosedString, UnexpectedCharacter,
        UnexpectedEnd, UnexpectedToken,
    };
    #[track_caller]
    fn check(expression: &str, kind: WhenErrorKind, offset: usize, token: Option<usize>) {
        let found = parse(expression).map_err(|error| (error.kind, error.offset, error.token));
        assert_eq!(found, Err((kind, offset, token)), "{expression}");
    }
    check("", Empty, 0, None);
    check("  ", Empty, 0, None);
    check("null", UnexpectedToken, 0, Some(0));
    check("1", UnexpectedToken, 0, Some(0));
    check("\"x\"", UnexpectedToken, 0, Some(0));
    check("a == 1.5", UnexpectedCharacter, 6, None);
    check("a-b", UnexpectedCharacter, 1, None);
    check("a = b", UnexpectedCharacter, 2, None);
    check("a & b", UnexpectedCharacter, 2, None);
    check(".a", UnexpectedCharacter, 0, None);
    check("a @ b", UnexpectedCharacter, 2, None);
    check("a ==", UnexpectedEnd, 4, None);
    check("(a", UnexpectedEnd, 2, None);
    check("!(a", UnexpectedEnd, 3, None);
    check("\"abc", UnclosedString, 0, None);
    check("a == b == c", TrailingInput, 7, Some(3));
    check("(a) == true", TrailingInput, 4, Some(3));
    check("a == true)", TrailingInput, 9, Some(3));
    check("a !", TrailingInput, 2, Some(1));
    check("(a b)", MissingParenthesis, 3, Some(2));
    check("a == )", MissingValue, 5, Some(2));
    check(&"(".repeat(5000), TooDeep, MAX_DEPTH + 1, Some(MAX_DEPTH + 1));
    check(&"!".repeat(5000), TooDeep, MAX_DEPTH + 1, Some(MAX_DEPTH + 1));
}

#[test]
fn excerpts_point_at_the_place() {
    let error = parse("a == 1.5").unwrap_err();
    assert_eq!(error.excerpt("a == 1.5"), "a == 1.5\n      ^");
}

#[test]
fn operators_are_mixed_per_pair_of_parentheses() {
    #[track_caller]
    fn check(expression: &str, expected: Option<usize>) {
        assert_eq!(mixes_operators(expression), expected, "{expression}");
    }
    check("a == true || b && c", Some(15));
    check("(a && b || c)", Some(8));
    check("a && (b || c) && d", None);
    check("a && b && c", None);
    check("a == '&&' || b", None);
}

#[test]
fn evaluation_follows_the_reference() {
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "the values are literals at the calls")]
    fn check(expression: &str, bag: Value, expected: bool) {
        assert_eq!(holds(expression, bag.clone()), expected, "{expression} with {bag}");
    }
    check("x == null", json!({}), false);
    check("x != null", json!({}), true);
    check("x > -1", json!({"x": null}), true);
    check("x > 0", json!({"x": true}), true);
    check("x >= 0", json!({"x": ""}), true);
    check("x == 1", json!({"x": "1"}), false);
    check("x > 3", json!({"x": "10"}), true);
    check("x", json!({"x": []}), true);
    check("x", json!({"x": "false"}), true);
    check("x", json!({"x": -0.0}), false);
    check("x", json!({"x": 0}), false);
    check("x", json!({"x": ""}), false);
    check("x", json!({"x": {}}), true);
    check("x.length > 1", json!({"x": [1, 2]}), true);
    check("x.0 == 5", json!({"x": [5]}), true);
    check("x.length", json!({"x": "abc"}), false);
    check("a.b == 1", json!({"a.b": 1}), false);
    check("!x.y", json!({}), true);
    check("x >= 0", json!({"x": []}), true);
    check("x > 3", json!({"x": [4]}), true);
    check("x > 3", json!({"x": [4, 5]}), false);
    check("x > 3", json!({}), false);
    check("true || x >", json!({}), false);
}

#[test]
fn trap_01_14_01_only_an_explicit_null_equals_null() {
    assert!(!holds("x == null", json!({})));
    assert!(holds("x != null", json!({})));
    assert!(holds("x == null", json!({"x": null})));
}

#[test]
fn trap_01_14_02_negation_covers_the_comparison() {
    assert!(!holds("!a == false", json!({"a": false})));
    assert!(holds("!a == false", json!({"a": true})));
}

#[test]
fn trap_01_14_03_right_hand_words_are_strings() {
    assert!(holds("mode == review", json!({"mode": "review"})));
    assert!(!holds("a == b", json!({"a": 1, "b": 1})));
    assert!(holds("a == b", json!({"a": "b"})));
}

#[test]
fn trap_01_14_04_when_and_condition_differ_on_null() {
    let Value::Object(bag) = json!({"x": null}) else { panic!("a bag is an object") };
    assert!(parse("x > -1").unwrap().holds(&bag));
    let condition =
        crate::Condition::Simple { variable: "x".to_owned(), operator: ">".to_owned(), value: Some(json!(-1)) };
    assert!(!condition.holds(&bag));
}

#[test]
fn trap_01_14_05_the_word_false_and_an_empty_list_are_truthy() {
    assert!(holds("x", json!({"x": "false"})));
    assert!(holds("x", json!({"x": []})));
}

#[test]
fn trap_01_14_06_there_are_no_decimals() {
    assert!(parse("score > 1.5").is_err());
    assert!(!holds("score > 1.5", json!({"score": 2})));
}
