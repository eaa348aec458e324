// The CDK's command line looks every 5 s whether a change set or a stack is ready, and every 2 s for a stack's events.
// That is AWS's pace: a local AWS is ready at once, and a deployment of ten stacks would wait for a minute or two.
if (/[\\/]cdk$/.test(process.argv[1] ?? '')) {
  const wait = globalThis.setTimeout;
  const sooner = (run, milliseconds, ...rest) => wait(run, milliseconds === 5000 ? 500 : milliseconds, ...rest);
  globalThis.setTimeout = Object.setPrototypeOf(sooner, wait); // util.promisify finds its own version there
}
