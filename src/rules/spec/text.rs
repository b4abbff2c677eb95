//! Texts that no container can be given.

use super::check::Check;
use crate::diag::Span;
use crate::diag::codes::spec as codes;

pub(super) fn check(check: &mut Check<'_>) {
    let mut found: Vec<(&str, Span)> = Vec::new();
    for place in check.all_containers() {
        let container = place.container;
        let mut texts = vec![("command", &container.command), ("preCommand", &container.pre_command)];
        if let Some(hooks) = &container.life_cycle {
            texts.push(("postStartExec", &hooks.value.post_start_exec));
            texts.push(("preStopExec", &hooks.value.pre_stop_exec));
        }
        if let Some(commands) = &container.commands {
            let commands = &commands.value;
            texts.extend([
                ("init", &commands.init),
                ("pre", &commands.pre),
                ("brokerPre", &commands.broker_pre),
                ("workerPre", &commands.worker_pre),
                ("preBroker", &commands.pre_broker),
                ("preWorker", &commands.pre_worker),
                ("servicePre", &commands.service_pre),
                ("prefix", &commands.prefix),
                ("script", &commands.script),
                ("post", &commands.post),
            ]);
        }
        found.extend(texts.into_iter().filter_map(|(field, text)| {
            text.as_ref().filter(|text| text.value.contains('\0')).map(|text| (field, text.span))
        }));
        let environment = container.environment.iter().flat_map(|map| &map.value);
        found.extend(environment.filter(|e| e.value.value.contains('\0')).map(|e| ("the variable", e.value.span)));
    }
    if let Some(flux) = check.flux() {
        let texts = [
            ("submitCommand", &flux.submit_command),
            ("wrap", &flux.wrap),
            ("optionFlags", &flux.option_flags),
            ("brokerConfig", &flux.broker_config),
        ];
        found.extend(texts.into_iter().filter_map(|(field, text)| {
            text.as_ref().filter(|text| text.value.contains('\0')).map(|text| (field, text.span))
        }));
        let environment = flux.environment.iter().flat_map(|map| &map.value);
        found.extend(environment.filter(|e| e.value.value.contains('\0')).map(|e| ("the variable", e.value.span)));
    }
    for (field, span) in found {
        let message = format!("{field} holds a NUL character");
        check.error(codes::NUL_CHARACTER, span, message, "remove it; neither shells nor environments can hold one");
    }
}
