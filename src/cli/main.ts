#!/usr/bin/env node
// The command line: one file per command beside this one, loaded only when it runs.
import { Command } from "commander";
import { VERSION } from "./version.ts";

const program = new Command("weir")
  .description("Rate limit and quota server for Envoy and other API gateways")
  .version(VERSION)
  .showHelpAfterError();

program
  .command("serve")
  .description("start the server; all settings come from the environment, see `weir settings`")
  .action(async () => (await import("./serve.ts")).serve());

program
  .command("check")
  .description("check rule files without starting a server; exits 1 if they have problems")
  .argument("<directory>", "where the rule files are")
  .option("--merge-domain-configs", "files may add top-level rules to a domain of another file")
  .action(async (directory: string, options: { mergeDomainConfigs?: true }) => {
    process.exitCode = (await import("./check.ts")).check(directory, options.mergeDomainConfigs === true);
  });

program
  .command("settings")
  .description("print every setting with its default, as a Markdown table")
  .action(async () => {
    process.stdout.write(`${(await import("../settings.ts")).settingsTable()}\n`);
  });

await program.parseAsync();
