//! Inline gates: the `when` grammar, its errors and its evaluation (spec 01 §5.2).

use std::fmt;

use serde_json::{Map, Value};

use crate::value::{lookup, number_of_text, ordered, strictly_equal};

/// Parentheses and negations nest this deep at most.
const MAX_DEPTH: usize = 100;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `true` or `false`.
    Constant(bool),
    /// A bare path: true when its value is truthy.
    Truthy(String),
    /// `path operator operand`.
    Compare {
        /// Dotted path.
        path: String,
        /// One of `== != > < >= <=`.
        operator: &'static str,
        /// A literal; a bare word is the string of that word.
        operand: Value,
    },
    /// Does not hold.
    Not(Box<Self>),
    /// All hold (at least two).
    And(Vec<Self>),
    /// Any holds (at least two).
    Or(Vec<Self>),
}

/// What is wrong with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenErrorKind {
    /// Nothing but blanks.
    Empty,
    /// A string without its closing quote.
    UnclosedString,
    /// A character that starts no token.
    UnexpectedCharacter,
    /// The expression stops too early.
    UnexpectedEnd,
    /// Something else stands where `)` belongs.
    MissingParenthesis,
    /// Something else stands where the right side of a comparison belongs.
    MissingValue,
    /// A token that cannot stand here.
    UnexpectedToken,
    /// The expression is complete, but more follows.
    TrailingInput,
    /// More nesting than is read.
    TooDeep,
}

/// Why an expression does not parse, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhenError {
    /// Class of the error.
    pub kind: WhenErrorKind,
    /// Position in characters from 0; the length of the expression at its end.
    pub offset: usize,
    /// Position among the tokens from 0, where tokens are concerned.
    pub token: Option<usize>,
    /// One line.
    pub message: String,
}

impl fmt::Display for WhenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WhenError {}

impl WhenError {
    /// The expression with a caret below the place.
    pub fn excerpt(&self, expression: &str) -> String {
        let line: String = expression.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("{line}\n{}^", " ".repeat(self.offset))
    }
}

/// Parses an expression.
pub fn parse(expression: &str) -> Result<Expr, WhenError> {
    let tokens = lex(expression)?;
    let end = expression.chars().count();
    if tokens.is_empty() {
        return Err(error(WhenErrorKind::Empty, 0, None, "the expression is empty".to_owned()));
    }
    let mut parser = Parser { tokens: &tokens, next: 0, end };
    let expr = parser.expr(0)?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => {
            Err(parser.at(WhenErrorKind::TrailingInput, &format!("`{}` follows a complete expression", token.text)))
        }
    }
}

/// Does the expression use `&&` and `||` within one pair of parentheses (or outside all), so that a reader has to know
/// which binds tighter (FIX-15)? The position, in characters, of the operator that mixes.
pub fn mixes_operators(expression: &str) -> Option<usize> {
    let tokens = lex(expression).ok()?;
    let mut open: Vec<Option<&str>> = vec![None];
    for token in &tokens {
        match token.text.as_str() {
            "(" if token.kind == TokenKind::Operator => open.push(None),
            ")" if token.kind == TokenKind::Operator => {
                open.pop();
                if open.is_empty() {
                    open.push(None);
                }
            }
            operator @ ("&&" | "||") if token.kind == TokenKind::Operator => match open.last_mut() {
                Some(Some(first)) if *first != operator => return Some(token.offset),
                Some(slot) => *slot = Some(operator),
                None => {}
            },
            _ => {}
        }
    }
    None
}

impl Expr {
    /// Does it hold for these variables?
    pub fn holds(&self, bag: &Map<String, Value>) -> bool {
        match self {
            Self::Constant(value) => *value,
            Self::Truthy(path) => lookup(bag, path).is_some_and(|value| truthy(&value)),
            Self::Compare { path, operator, operand } => {
                let found = lookup(bag, path);
                let equal = found.as_deref().is_some_and(|found| strictly_equal(found, operand));
                match *operator {
                    "==" => equal,
                    "!=" => !equal,
                    _ => ordered(found.as_deref().and_then(number), operator, number(operand)),
                }
            }
            Self::Not(inner) => !inner.holds(bag),
            Self::And(parts) => parts.iter().all(|part| part.holds(bag)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(bag)),
        }
    }

    /// Every path it reads, in order.
    pub fn reads(&self) -> Vec<&str> {
        match self {
            Self::Constant(_) => Vec::new(),
            Self::Truthy(path) | Self::Compare { path, .. } => vec![path],
            Self::Not(inner) => inner.reads(),
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::reads).collect(),
        }
    }
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0 && !number.is_nan()),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// The number that JavaScript makes of a value; `None` is NaN.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(0.0),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number_of_text(text),
        Value::Array(list) => match list.as_slice() {
            [] => Some(0.0),
            [Value::Number(number)] => number.as_f64(),
            _ => None,
        },
        Value::Object(_) => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Word,
    Integer,
    Text,
    Operator,
}

#[derive(Debug)]
struct Token {
    kind: TokenKind,
    /// Operators and words as written, strings unquoted.
    text: String,
    offset: usize,
}

fn error(kind: WhenErrorKind, offset: usize, token: Option<usize>, message: String) -> WhenError {
    WhenError { kind, offset, token, message }
}

fn lex(expression: &str) -> Result<Vec<Token>, WhenError> {
    const LONG: [&str; 6] = ["&&", "||", "==", "!=", ">=", "<="];
    let chars: Vec<char> = expression.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let offset = at;
        let next = chars.get(at + 1).copied();
        let run = |from: usize, of: fn(char) -> bool| from + chars[from..].iter().take_while(|c| of(**c)).count();
        let (kind, text) = if c.is_whitespace() {
            at += 1;
            continue;
        } else if c.is_ascii_alphabetic() || c == '_' {
            at = run(at, |c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            (TokenKind::Word, chars[offset..at].iter().collect())
        } else if c.is_ascii_digit() || (c == '-' && next.is_some_and(|next| next.is_ascii_digit())) {
            at = run(at + 1, |c| c.is_ascii_digit());
            (TokenKind::Integer, chars[offset..at].iter().collect())
        } else if c == '"' || c == '\'' {
            let (text, after) = quoted(&chars, at)?;
            at = after;
            (TokenKind::Text, text)
        } else if let Some(long) = LONG.iter().find(|long| long.chars().eq([c].into_iter().chain(next))) {
            at += 2;
            (TokenKind::Operator, (*long).to_owned())
        } else if matches!(c, '(' | ')' | '!' | '>' | '<') {
            at += 1;
            (TokenKind::Operator, c.to_string())
        } else {
            return Err(error(
                WhenErrorKind::UnexpectedCharacter,
                offset,
                None,
                format!("unexpected character `{c}` at position {offset}"),
            ));
        };
        tokens.push(Token { kind, text, offset });
    }
    Ok(tokens)
}

/// The content of the string that opens at `start`, and the position behind it. A backslash makes the next character
/// literal.
fn quoted(chars: &[char], start: usize) -> Result<(String, usize), WhenError> {
    let mut text = String::new();
    let mut at = start + 1;
    while let Some(&c) = chars.get(at) {
        if c == chars[start] {
            return Ok((text, at + 1));
        }
        let literal = if c == '\\' { chars.get(at + 1) } else { None };
        text.push(*literal.unwrap_or(&c));
        at += if literal.is_some() { 2 } else { 1 };
    }
    let message = format!("the string that opens at position {start} is not closed");
    Err(error(WhenErrorKind::UnclosedString, start, None, message))
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    end: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self, operator: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == TokenKind::Operator && token.text == operator);
        self.next += usize::from(found);
        found
    }

    /// An error at the next token, or at the end.
    fn at(&self, kind: WhenErrorKind, message: &str) -> WhenError {
        match self.peek() {
            Some(token) => error(kind, token.offset, Some(self.next), format!("{message} (position {})", token.offset)),
            None => error(WhenErrorKind::UnexpectedEnd, self.end, None, "the expression ends too early".to_owned()),
        }
    }

    fn expr(&mut self, depth: usize) -> Result<Expr, WhenError> {
        let mut parts = vec![self.conjunction(depth)?];
        while self.take("||") {
            parts.push(self.conjunction(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Or(parts) })
    }

    fn conjunction(&mut self, depth: usize) -> Result<Expr, WhenError> {
        let mut parts = vec![self.negation(depth)?];
        while self.take("&&") {
            parts.push(self.negation(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::And(parts) })
    }

    fn negation(&mut self, depth: usize) -> Result<Expr, WhenError> {
        if depth > MAX_DEPTH {
            return Err(self.at(WhenErrorKind::TooDeep, &format!("more than {MAX_DEPTH} levels of nesting")));
        }
        if self.take("!") {
            return Ok(Expr::Not(Box::new(self.negation(depth + 1)?)));
        }
        self.atom(depth)
    }

    fn atom(&mut self, depth: usize) -> Result<Expr, WhenError> {
        if self.take("(") {
            let inner = self.expr(depth + 1)?;
            if self.take(")") {
                return Ok(inner);
            }
            return Err(self.at(WhenErrorKind::MissingParenthesis, "`)` is missing"));
        }
        let word = match self.peek() {
            Some(token) if token.kind == TokenKind::Word && token.text != "null" => token,
            Some(token) => {
                let message = format!("`{}` cannot stand here; a variable is expected", token.text);
                return Err(self.at(WhenErrorKind::UnexpectedToken, &message));
            }
            None => return Err(self.at(WhenErrorKind::UnexpectedEnd, "")),
        };
        self.next += 1;
        match word.text.as_str() {
            "true" => return Ok(Expr::Constant(true)),
            "false" => return Ok(Expr::Constant(false)),
            _ => {}
        }
        for operator in ["==", "!=", ">", "<", ">=", "<="] {
            if self.take(operator) {
                return Ok(Expr::Compare { path: word.text.clone(), operator, operand: self.operand()? });
            }
        }
        Ok(Expr::Truthy(word.text.clone()))
    }

    fn operand(&mut self) -> Result<Value, WhenError> {
        let value = match self.peek() {
            Some(Token { kind: TokenKind::Word, text, .. }) => match text.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "null" => Value::Null,
                word => Value::from(word),
            },
            Some(Token { kind: TokenKind::Text, text, .. }) => Value::from(text.as_str()),
            Some(Token { kind: TokenKind::Integer, text, .. }) => match text.parse::<i64>() {
                Ok(number) => Value::from(number),
                Err(_) => Value::from(text.parse::<f64>().unwrap_or(f64::INFINITY)),
            },
            Some(Token { kind: TokenKind::Operator, text, .. }) => {
                let message = format!("a value to compare with is expected, not `{text}`");
                return Err(self.at(WhenErrorKind::MissingValue, &message));
            }
            None => return Err(self.at(WhenErrorKind::UnexpectedEnd, "")),
        };
        self.next += 1;
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
