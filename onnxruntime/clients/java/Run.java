import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Runs cases with the package com.microsoft.onnxruntime: java Run.java CASES [PROVIDER]. */
public class Run {
    private static final int TURNS = 3;
    private static final OrtEnvironment ENVIRONMENT = OrtEnvironment.getEnvironment();

    /** A tensor of a case, as cases.py writes it. */
    private static final class Tensor {
        final String name;
        final double tolerance;
        final long[] dims;
        /** A FloatBuffer, a LongBuffer or a String[]. */
        final Object data;

        Tensor(Path folder, String[] fields) throws IOException {
            name = fields[1];
            tolerance = Double.parseDouble(fields[3]);
            byte[] bytes = Files.readAllBytes(folder.resolve(fields[4]));
            ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
            dims = Arrays.stream(fields, 5, fields.length).mapToLong(Long::parseLong).toArray();
            switch (fields[2]) {
                case "float32": data = buffer.asFloatBuffer(); break;
                case "int64": data = buffer.asLongBuffer(); break;
                case "string":
                    String[] parts = new String(bytes, StandardCharsets.UTF_8).split("\0", -1);
                    data = Arrays.copyOf(parts, parts.length - 1);
                    break;
                default: throw new IOException("a tensor of " + fields[2] + ", which no case has");
            }
        }

        OnnxTensor value() throws OrtException {
            if (data instanceof FloatBuffer) return OnnxTensor.createTensor(ENVIRONMENT, (FloatBuffer) data, dims);
            if (data instanceof LongBuffer) return OnnxTensor.createTensor(ENVIRONMENT, (LongBuffer) data, dims);
            return OnnxTensor.createTensor(ENVIRONMENT, (String[]) data, dims);
        }

        void compare(OnnxTensor found) throws Exception {
            TensorInfo info = found.getInfo();
            if (!Arrays.equals(info.getShape(), dims)) {
                throw new Exception(name + " is " + Arrays.toString(info.getShape()) + ", expected " + Arrays.toString(dims));
            }
            if (info.type == OnnxJavaType.FLOAT && data instanceof FloatBuffer) {
                FloatBuffer values = found.getFloatBuffer(), wanted = (FloatBuffer) data;
                require(values.remaining() == wanted.limit(), 0);
                for (int i = 0; i < wanted.limit(); i++) {
                    require(Math.abs((double) values.get(i) - wanted.get(i)) <= tolerance, i);
                }
            } else if (info.type == OnnxJavaType.INT64 && data instanceof LongBuffer) {
                require(found.getLongBuffer().equals(((LongBuffer) data).duplicate().rewind()), 0);
            } else if (info.type == OnnxJavaType.STRING && data instanceof String[]) {
                List<Object> texts = new ArrayList<>();
                flatten(found.getValue(), texts);
                require(texts.equals(Arrays.asList((String[]) data)), 0);
            } else {
                throw new Exception(name + " is of type " + info.type);
            }
        }

        private void require(boolean isRight, int index) throws Exception {
            if (!isRight) throw new Exception(name + " differs from element " + index + " on");
        }
    }

    /** The elements in one list, of arrays of any depth. */
    private static void flatten(Object value, List<Object> out) {
        if (value instanceof Object[]) {
            for (Object item : (Object[]) value) flatten(item, out);
        } else {
            out.add(value);
        }
    }

    private static OrtSession.SessionOptions options(String provider, boolean strict) throws OrtException {
        OrtSession.SessionOptions made = new OrtSession.SessionOptions();
        switch (provider) {
            case "rocm": made.addROCM(0); break;
            case "cuda": made.addCUDA(new OrtCUDAProviderOptions(0)); break;
            case "cpu": return made;
            default: throw new IllegalArgumentException("provider " + provider + "; known are cpu, rocm, cuda");
        }
        if (strict) made.addConfigEntry("session.disable_cpu_ep_fallback", "1");
        return made;
    }

    /** Opens the case's model from a path and from memory, and runs each. */
    private static void run(Path folder, String provider) throws Exception {
        boolean strict = false;
        List<Tensor> inputs = new ArrayList<>(), outputs = new ArrayList<>();
        for (String line : Files.readAllLines(folder.resolve("tensors.txt"))) {
            String[] fields = line.split(" ");
            switch (fields[0]) {
                case "strict": strict = true; break;
                case "input": inputs.add(new Tensor(folder, fields)); break;
                case "output": outputs.add(new Tensor(folder, fields)); break;
                default: throw new Exception("a line \"" + line + "\" in tensors.txt");
            }
        }
        if (outputs.isEmpty()) throw new Exception("no outputs in tensors.txt");
        Path model = folder.resolve("model.onnx");
        for (int source = 0; source < 2; source++) {
            try (OrtSession.SessionOptions options = options(provider, strict);
                    OrtSession session = source == 0
                            ? ENVIRONMENT.createSession(model.toString(), options)
                            : ENVIRONMENT.createSession(Files.readAllBytes(model), options)) {
                Map<String, OnnxTensor> feeds = new HashMap<>();
                for (Tensor input : inputs) feeds.put(input.name, input.value());
                for (int turn = 0; turn < TURNS; turn++) {
                    try (OrtSession.Result result = session.run(feeds)) {
                        for (Tensor output : outputs) output.compare((OnnxTensor) result.get(output.name).get());
                    }
                }
                feeds.values().forEach(OnnxTensor::close);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String provider = arguments.length > 1 ? arguments[1] : "cpu";
        File[] folders = new File(arguments[0]).listFiles(File::isDirectory);
        int failed = 0;
        for (File folder : folders) {
            try {
                run(folder.toPath(), provider);
            } catch (Exception error) {
                failed++;
                System.err.println(folder.getName() + ": " + error.getMessage());
            }
        }
        // A wrong model is an error, which does not end the program.
        try (OrtSession session = ENVIRONMENT.createSession("no model".getBytes())) {
            failed++;
            System.err.println("bytes that are no model open");
        } catch (OrtException expected) {
            // As it should be.
        }
        int passed = folders.length - failed;
        System.out.printf("onnxruntime for Java %s, %s: %d passed, %d failed%n", ENVIRONMENT.getVersion(), provider, passed, failed);
        System.exit(failed > 0 || folders.length == 0 ? 1 : 0);
    }
}
