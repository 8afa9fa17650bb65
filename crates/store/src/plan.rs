//! Which folders a call needs, decided before any is held (spec 03 §1.5, §1.9, §5.5).

use workflow_engine::{Refusal, Target, Warning, slug};

use crate::{
    FileStore,
    find::{Located, Named, twin},
    layout::Place,
    refusals,
    store::View,
};

/// The folders of a call.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The addressed session's.
    pub(crate) first: Place,
    /// The parent's, or the one promoted to.
    pub(crate) second: Option<(Place, Role)>,
    /// Index that the first must hold.
    pub(crate) index: Option<String>,
    /// There was a session in the first when it was looked up.
    pub(crate) existing: bool,
    /// Folders made for this call, removed again when nothing is written there.
    pub(crate) created: Vec<Place>,
    pub(crate) warnings: Vec<Warning>,
}

/// What the second folder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Holds the parent; asked for by name, or only told.
    Parent { asked: bool },
    /// Takes the promoted session; one that nobody named must be free.
    Promotion { named: bool },
}

impl FileStore {
    /// Decides which folders a target needs, and makes those of new sessions.
    ///
    /// # Errors
    /// Those of finding and of slugs (spec 03 §11 A, B).
    pub(crate) fn plan(&self, view: &View, target: &Target) -> Result<Plan, Refusal> {
        match target {
            Target::Nothing => Err(Refusal::new("INTERNAL_INVALID_STATE", "a call without session has no folder")),
            Target::Session { index, parent } => {
                let mut plan = self.plan_index(view, index)?;
                if *parent {
                    match self.parent_of(view, &plan.first, Some(index)) {
                        Ok(second) => plan.second = second,
                        Err(refusal) => plan.warnings.push(untold(&refusal)),
                    }
                }
                Ok(plan)
            }
            Target::Slug { slug, minted, transient, parent } => {
                self.plan_slug(view, slug, (*minted, *transient), parent.as_deref())
            }
            Target::Dispatch { index, slug, fallback } => {
                let mut plan = self.plan_index(view, index)?;
                let summary = self.memory.summary(&self.disk, &plan.first.path);
                if plan.first.transient && summary.is_ok_and(|summary| summary.root() == Some(index.as_str())) {
                    self.plan_promotion(view, &mut plan, slug.as_deref(), fallback)?;
                }
                Ok(plan)
            }
        }
    }

    fn plan_index(&self, view: &View, index: &str) -> Result<Plan, Refusal> {
        Ok(Plan {
            first: self.settle(view, self.locate(view, index)?),
            second: None,
            index: Some(index.to_owned()),
            existing: true,
            created: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// The place of a session, once what an interrupted promotion left is gone.
    fn settle(&self, view: &View, located: Located) -> Place {
        if let Some(copy) = located.leftover {
            // It goes with a later call if not now.
            let _ignored = self.retire_copy(view, &copy, &located.place);
        }
        located.place
    }

    /// Folder of an own-folder session's parent, when it has one.
    ///
    /// # Errors
    /// It has one that is not found.
    fn parent_of(&self, view: &View, child: &Place, addressed: Option<&str>) -> Result<Option<(Place, Role)>, Refusal> {
        // What keeps the child from being opened is told where it is opened under its lock.
        let Some(opened) = self.open_unlocked(view, child, true).ok().flatten() else { return Ok(None) };
        if addressed.is_some_and(|index| index != opened.root.session_index) {
            return Ok(None);
        }
        let Some(parent) = opened.root.parent_session else { return Ok(None) };
        let place = self.settle(view, self.locate(view, &parent.session_index)?);
        Ok((place != *child).then_some((place, Role::Parent { asked: false })))
    }

    fn plan_slug(
        &self,
        view: &View,
        name: &str,
        (minted, transient): (bool, bool),
        parent: Option<&str>,
    ) -> Result<Plan, Refusal> {
        slug::check(name)?;
        let walk = self.walk_for(view, name);
        let named = if minted { Named::Nothing } else { self.named(view, name, &walk)? };
        let asked = parent.map(|parent| {
            let place = self.named_parent(view, parent)?;
            if place.path.file_name().is_some_and(|own| own == name) {
                return Err(refusals::parent_not_found(parent, &view.roots.searched()));
            }
            Ok(place)
        });
        match named {
            Named::Session(located) => {
                let first = self.settle(view, located);
                let mut warnings = Vec::new();
                let second = match asked {
                    Some(Ok(place)) => Some((place, Role::Parent { asked: true })),
                    Some(Err(refusal)) => {
                        warnings.push(Warning { code: "W_PARENT_NOT_FOUND", message: refusal.text() });
                        None
                    }
                    None => self.parent_of(view, &first, None).unwrap_or_default(),
                };
                Ok(Plan { first, second, index: None, existing: true, created: Vec::new(), warnings })
            }
            Named::Legacy(place) => Err(refusals::migration_required(&place.text)),
            Named::SealAlone(place) => Err(refusals::seal_left_alone(&place)),
            Named::Nothing if !minted && slug::is_minted(name) => {
                let what = format!("the minted slug '{name}'");
                Err(refusals::not_found(&what, &view.roots.searched(), &walk.unreadable).with("slug", name))
            }
            Named::Nothing if walk.may_hide(name) => Err(refusals::may_exist(name, &walk.unreadable)),
            Named::Nothing => {
                let second = asked.transpose()?.map(|place| (place, Role::Parent { asked: true }));
                let (first, created) = self.make_folder(view, name, transient, &walk)?;
                let created = if created { vec![first.clone()] } else { Vec::new() };
                Ok(Plan { first, second, index: None, existing: false, created, warnings: Vec::new() })
            }
        }
    }

    fn named_parent(&self, view: &View, name: &str) -> Result<Place, Refusal> {
        slug::check(name)?;
        match self.named(view, name, &self.walk_for(view, name))? {
            Named::Session(located) => Ok(self.settle(view, located)),
            Named::Legacy(place) => Err(refusals::migration_required(&place.text)),
            Named::SealAlone(_) | Named::Nothing => Err(refusals::parent_not_found(name, &view.roots.searched())),
        }
    }

    fn plan_promotion(&self, view: &View, plan: &mut Plan, named: Option<&str>, fallback: &str) -> Result<(), Refusal> {
        let (place, created) = if let Some(name) = named {
            slug::check(name)?;
            let walk = self.walk_for(view, name);
            match self.named_in_planning(view, name, &walk)? {
                Named::Session(located) => (located.place, false),
                Named::Legacy(place) => return Err(refusals::migration_required(&place.text)),
                Named::SealAlone(place) => return Err(refusals::seal_left_alone(&place)),
                Named::Nothing if walk.may_hide(name) => return Err(refusals::may_exist(name, &walk.unreadable)),
                Named::Nothing => self.make_folder(view, name, false, &walk)?,
            }
        } else {
            self.free_folder(view, fallback)?
        };
        let role = Role::Promotion { named: named.is_some() };
        if created {
            plan.created.push(place.clone());
        }
        plan.second = Some((place, role));
        Ok(())
    }

    /// The first of `name`, `name-2`, `name-3` … that holds nothing.
    fn free_folder(&self, view: &View, name: &str) -> Result<(Place, bool), Refusal> {
        let walk = self.walk_for(view, name);
        for nth in 1..10_000_u32 {
            let candidate = if nth == 1 { name.to_owned() } else { format!("{name}-{nth}") };
            if matches!(self.named_in_planning(view, &candidate, &walk), Ok(Named::Nothing))
                && twin(&candidate, &walk).is_none()
            {
                return self.make_folder(view, &candidate, false, &walk);
            }
        }
        Err(Refusal::new(
            "SLUG_IN_USE",
            format!("'{name}' and all its numbered forms are taken. Dispatch with another planning_slug."),
        ))
    }
}

/// The end of a session does not wait for its parent, which takes it over when it is next resumed (spec 03 §1.9).
pub(crate) fn untold(refusal: &Refusal) -> Warning {
    Warning { code: "W_PARENT_LINK", message: format!("the parent session was not told: {}", refusal.text()) }
}
