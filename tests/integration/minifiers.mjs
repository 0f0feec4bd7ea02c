// Minifies standard input with one of three minifiers at its strongest: node minifiers.mjs NAME < in.html > out.html
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const load = createRequire(process.cwd() + "/");
const input = readFileSync(0);
const minifiers = {
  "html-minifier-terser": async () =>
    load("html-minifier-terser").minify(input.toString(), {
      collapseWhitespace: true,
      removeComments: true,
      minifyCSS: true,
      minifyJS: true,
      removeAttributeQuotes: true,
      removeOptionalTags: true,
      removeRedundantAttributes: true,
      removeScriptTypeAttributes: true,
      collapseBooleanAttributes: true,
      sortAttributes: true,
    }),
  htmlnano: async () => {
    const htmlnano = load("htmlnano");
    const presets = load("htmlnano/presets/max");
    const result = await (htmlnano.default ?? htmlnano).process(
      input.toString(), { skipConfigLoading: true }, presets.default ?? presets, {});
    return result.html;
  },
  "@minify-html/node": async () =>
    load("@minify-html/node").minify(input, { minify_css: true, minify_js: true, keep_comments: false }),
};
process.stdout.write(await minifiers[process.argv[2]]());
