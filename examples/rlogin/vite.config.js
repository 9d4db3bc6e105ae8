import { defineConfig } from 'vite';

export default defineConfig({
  build: { target: 'es2022' },
  // Vite's development server must not bundle the package, whose files name the module and the worker beside them.
  optimizeDeps: { exclude: ['rootlight'] },
});
