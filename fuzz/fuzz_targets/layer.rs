#![cfg_attr(fuzzing, no_main)]

flux_gen_fuzz::target!(flux_gen_fuzz::targets::layer);
