// Prints, as JSON, the command that a client runs for an unpacked bundle, by the code that Claude Desktop uses for it.
// Arguments: the module, the bundle's folder, the user's answers as JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, folder, answers] = process.argv.slice(2);
const { getMcpConfigForManifest } = await import(pathToFileURL(module));
const config = await getMcpConfigForManifest({
  manifest: JSON.parse(readFileSync(`${folder}/manifest.json`, "utf-8")),
  extensionPath: folder,
  systemDirs: {},
  userConfig: JSON.parse(answers),
  pathSeparator: "/",
});
console.log(JSON.stringify(config));
